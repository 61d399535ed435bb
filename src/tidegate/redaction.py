"""Hides secrets in texts that people see: errors, warnings, logs, `tidegate inspect`.

    s3://key:secret@bucket/ck               s3://key:***@bucket/ck
    jdbc:x://host/db?user=me&password=pw    jdbc:x://host/db?user=me&password=***

A parameter is hidden if its name looks like that of a secret, so some harmless ones are hidden too.
Limits: a secret in a part of a path, or before `@` without a `:`, is not recognised.
"""

from __future__ import annotations

import re

HIDDEN_VALUE = "***"
#: The password of a URL; it may contain `/` and `@`. After a port there is none.
_PASSWORD = re.compile(r"(://[^\s:/@'\"]*:)(?!\d+(?:[/,]|$))[^\s'\"]+(?=@)")
_SECRET_NAME = r"[\w.%-]*(?:passw(?:or)?d|pwd|secret|token|credential|signature|\bsig\b|key)[\w.%-]*"
_PARAMETER = re.compile(rf"([?&;]{_SECRET_NAME}=)[^\s&;,'\"]+", re.IGNORECASE)


def without_secrets(text: str) -> str:
    """The text with `***` in place of passwords and secret parameters of the URLs in it.

    >>> without_secrets("nothing at s3://me:pw@bucket/ck?endpoint=x&token=t")
    'nothing at s3://me:***@bucket/ck?endpoint=x&token=***'
    """
    if "://" not in text and "=" not in text:
        return text
    hidden = _PASSWORD.sub(rf"\g<1>{HIDDEN_VALUE}", text)
    return _PARAMETER.sub(rf"\g<1>{HIDDEN_VALUE}", hidden)
