"""The classes that may be saved, by a stable name that outlives renames and moves of the class."""

import re
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum, Flag
from typing import Any, Protocol, TypeVar

from checkpoints.errors import ShapeChanged, UnknownType

# Which of a model's fields were given rather than left to their defaults. No field can have this name.
FIELDS_SET = ""

_NAME = re.compile(r"[a-z0-9][a-z0-9._/-]{0,99}")

T = TypeVar("T")


class EnumClass:
    """Members are saved by name (flags by number), so a changed value keeps its meaning."""

    def __init__(self, name: str, cls: type[Enum]) -> None:
        self.name = name
        self.cls = cls

    def label(self, member: Enum) -> str | int:
        return int(member.value) if isinstance(member, Flag) else member.name

    def member(self, label: str | int) -> Enum:
        try:
            return self.cls[label] if isinstance(label, str) else self.cls(label)
        except (KeyError, ValueError):
            raise UnknownType(f"{self.name}.{label}") from None


class ObjectClass(Protocol):
    """A class whose instances are their fields."""

    name: str
    cls: type
    frozen: bool

    def content(self, value: Any) -> dict[str, object]:
        """The value's fields. Raises ValueError with the reason if they are not all there is to it."""

    def restore(self, content: dict[str, object]) -> object:
        """A new instance, made without running its `__init__`. Raises ShapeChanged."""


class DataClass:
    """A dataclass; a field added since the value was saved takes its default."""

    def __init__(self, name: str, cls: type) -> None:
        make: object = cls.__new__
        if make is not object.__new__:
            raise TypeError(f"{cls.__qualname__} has contents besides its fields: it extends a built-in type")
        self.name = name
        self.cls = cls
        self.frozen = bool(cls.__dataclass_params__.frozen)  # type: ignore[attr-defined]
        self.fields = {field.name: field for field in fields(cls)}
        slots = {slot for base in cls.__mro__ for slot in base.__dict__.get("__slots__", ())}
        _only(self.fields.keys() | {"__dict__", "__weakref__"}, slots)

    def content(self, value: Any) -> dict[str, object]:
        _only(self.fields.keys(), getattr(value, "__dict__", ()))
        try:
            return {name: getattr(value, name) for name in self.fields}
        except AttributeError as error:
            raise ValueError(f"field {error.name!r} is not set") from None

    def restore(self, content: dict[str, object]) -> object:
        unexpected = content.keys() - self.fields.keys()
        added = {name: field for name, field in self.fields.items() if name not in content}
        missing = [name for name, field in added.items() if not _has_default(field)]
        if missing or unexpected:
            raise ShapeChanged(self.name, missing=tuple(missing), unexpected=tuple(sorted(unexpected)))
        value: object = object.__new__(self.cls)
        for name, field in added.items():
            object.__setattr__(value, name, _default(field))
        for name, saved in content.items():
            object.__setattr__(value, name, saved)
        return value


class Model:
    """A pydantic model, by its own `__getstate__` and `__setstate__`; pydantic is never imported here."""

    def __init__(self, name: str, cls: Any) -> None:
        self.name = name
        self.cls = cls
        self.frozen = bool(cls.model_config.get("frozen"))

    def content(self, value: Any) -> dict[str, object]:
        state = value.__getstate__()
        _only(self.cls.model_fields.keys(), state["__dict__"])
        extra, private = state["__pydantic_extra__"] or {}, state["__pydantic_private__"] or {}
        if extra.keys() & private.keys():
            raise ValueError(f"extra and private attributes have the same name: {sorted(extra.keys() & private)}")
        return {
            **state["__dict__"],
            **extra,
            **private,
            FIELDS_SET: tuple(sorted(state["__pydantic_fields_set__"])),
        }

    def restore(self, content: dict[str, object]) -> object:
        saved = dict(content)
        fields_set = saved.pop(FIELDS_SET)
        names = self.cls.model_fields
        private = {name: saved.pop(name) for name in list(saved) if name in self.cls.__private_attributes__}
        values = {name: saved.pop(name) for name in list(saved) if name in names}
        missing = [name for name, info in names.items() if name not in values and info.is_required()]
        allows_extra = self.cls.model_config.get("extra") == "allow"
        if missing or (saved and not allows_extra):
            raise ShapeChanged(self.name, missing=tuple(missing), unexpected=tuple(sorted(saved)))
        for name, info in names.items():
            if name not in values:
                values[name] = info.get_default(call_default_factory=True)
        value = self.cls.__new__(self.cls)
        value.__setstate__(
            {
                "__dict__": values,
                "__pydantic_extra__": saved if allows_extra else None,
                "__pydantic_fields_set__": set(fields_set),  # type: ignore[call-overload]
                "__pydantic_private__": private or None,
            }
        )
        return value


_by_type: dict[type, EnumClass | ObjectClass] = {}
_by_name: dict[str, EnumClass | ObjectClass] = {}


def register(name: str) -> Callable[[type[T]], type[T]]:
    """Let instances of an enum, dataclass or pydantic model be saved, under a name that must never change.

    `@register("shop/order-line")`: lower-case letters, digits and `._/-`, at most 100 characters. Raises
    TypeError for any other kind of class, ValueError for a bad name, one that another class has, or slots
    that are no fields.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"not a stable name: {name!r}")

    def decorate(cls: type[T]) -> type[T]:
        if _by_name.get(name) is not None and _by_name[name].cls is not cls:
            raise ValueError(f"{name!r} is already {_by_name[name].cls.__qualname__}")
        _by_type[cls] = _by_name[name] = _entry(name, cls)
        return cls

    return decorate


def entry_of(cls: type) -> EnumClass | ObjectClass | None:
    return _by_type.get(cls)


def entry_called(name: str) -> EnumClass | ObjectClass:
    """Raises UnknownType."""
    try:
        return _by_name[name]
    except KeyError:
        raise UnknownType(name) from None


def _entry(name: str, cls: type) -> EnumClass | ObjectClass:
    if issubclass(cls, Enum):
        return EnumClass(name, cls)
    if hasattr(cls, "__pydantic_fields_set__") and hasattr(cls, "model_fields"):
        return Model(name, cls)
    if is_dataclass(cls):
        return DataClass(name, cls)
    raise TypeError(f"{cls.__qualname__} is not an enum, a dataclass or a pydantic model")


def _only(known: Any, present: Any) -> None:
    others = sorted(set(present) - set(known))
    if others:
        raise ValueError(f"has attributes that are not fields and would be lost: {others}")


def _has_default(field: "Field[Any]") -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _default(field: "Field[Any]") -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()
