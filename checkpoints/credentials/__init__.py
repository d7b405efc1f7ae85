"""What looks like a credential in a text: by its form, or by the name it goes by. Texts and names only, no values.

Forms are those that the issuers document. A finding names its rule and never carries the text.
"""

from checkpoints.credentials.names import is_secret_name
from checkpoints.credentials.scanning import find, may_hold_one, redacted

__all__ = ["find", "is_secret_name", "may_hold_one", "redacted"]
