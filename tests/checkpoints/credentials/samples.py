"""Credentials of every form, made up when the tests run: none is written down, so that no scanner finds one here."""

import random
import string

ALPHANUMERIC = string.ascii_letters + string.digits
_source = random.Random(7)


def letters(count: int, alphabet: str = ALPHANUMERIC) -> str:
    made = "".join(_source.choice(alphabet) for _ in range(count - 2))
    return made + "a1"  # at least a letter and a digit


def hexadecimal(count: int) -> str:
    return letters(count, "0123456789abcdef")


SAMPLES = {
    "github-token": "ghp_" + letters(36),
    "gitlab-token": "glpat-" + letters(20),
    "aws-access-key": "AKIA" + letters(16, "ABCDEFGH234567").upper().replace("1", "2"),
    "google-api-key": "AIza" + letters(35),
    "azure-storage-key": "AccountKey=" + letters(86) + "==",
    "stripe-key": "sk_live_" + letters(24),
    "shopify-token": "shpat_" + hexadecimal(32),
    "openai-key": "sk-proj-" + letters(48),
    "anthropic-key": "sk-ant-api03-" + letters(80),
    "hugging-face-token": "hf_" + letters(34),
    "slack-token": "xoxb-" + letters(30),
    "npm-token": "npm_" + letters(36),
    "jwt": f"eyJ{letters(20)}.eyJ{letters(40)}.{letters(43)}",
    "private-key": f"-----BEGIN RSA PRIVATE KEY-----\n{letters(64)}\n{letters(64)}\n-----END RSA PRIVATE KEY-----",
    "url-password": f"postgres://app:{letters(12)}@db.example/app",
    "named-secret": f"export API_KEY={letters(32)}",
    "authorization-header": f"Authorization: Bearer {letters(40)}",
    "fermata-key": f"fmt_{letters(12)}_{letters(43)}",
    "fermata-token": f"fmp_{letters(12)}_{letters(43)}",
}
HARMLESS = [
    "",
    "The token is in the password field; ask for the secret.",
    "tokens: 4096, max_tokens=128000",
    "task-based risk-free desk-side",
    "https://example.com/a?token=",
    "https://user@example.com:8080/path",
    "postgres://postgres:postgres@localhost/db",
    "postgres://user:password@localhost/db",
    "postgres://app:${DB_PASSWORD}@db/app",
    "password: changeme123",
    "api_key = <your-api-key-1>",
    "API_KEY=$OPENAI_KEY_2",
    "password_file=/run/secrets/db1",
    "sort_key: customer2_name",
    "next_page_token=" + letters(40),
    "AKIAIOSFODNN7" + "EXAMPLE",
    "-----BEGIN PUBLIC KEY-----\n" + letters(64),
    "Write -----BEGIN PRIVATE KEY----- at the top.",
    "eyJ" + letters(20),
    letters(64),
    hexadecimal(64),
    "12345678-1234-5678-1234-567812345678",
]
