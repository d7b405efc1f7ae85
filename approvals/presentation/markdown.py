"""An agent's words as HTML: a part of Markdown that loads nothing, links nowhere, never looks like the page.

What is left out (links, images, headings, raw HTML) stays in the text as it was written.
"""

from collections.abc import Sequence
from typing import Any

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from runs.presentation.text import visible

_TAGS = {
    "p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote",
    "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "span",
}  # fmt: skip
_ATTRIBUTES = {"span": {"class", "title"}, "ol": {"start"}}
_OFF = ["link", "image", "autolink", "html_inline", "html_block", "heading", "lheading", "reference"]


class _Renderer(RendererHTML):
    """Shows every text token through `visible`, after Markdown has decoded its entities."""

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return visible(tokens[idx].content)

    def code_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<code>{visible(tokens[idx].content)}</code>"

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<pre><code>{visible(tokens[idx].content)}</code></pre>\n"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        info = f'<span class="fence-info">{visible(tokens[idx].info)}</span>\n' if tokens[idx].info else ""
        return f"<pre><code>{info}{visible(tokens[idx].content)}</code></pre>\n"


def _parser() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True}, renderer_cls=_Renderer)
    return markdown.enable(["table", "strikethrough"]).disable(_OFF)


_MARKDOWN = _parser()


def agent_words(text: str) -> SafeString:
    """`text` as sanitised HTML. Show it inside an element with `hx-disable`, labelled as the agent's words."""
    html: Any = _MARKDOWN.render(text)
    return mark_safe(nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes=set()))  # noqa: S308
