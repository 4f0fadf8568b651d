"""Words in names of fields by which a draft guesses what the fields are for."""

from railgun.draft.naming import words_of


def _words(text: str) -> frozenset[str]:
    return frozenset(words_of(text))


COUNT_OR_ID = _words(
    "id ids no nr num number count cnt counter qty quantity quantities items seq sequence version attempts retries "
    "tries times n key code"
)
"""Whole numbers of such names stay whole numbers."""
AMOUNT = _words(
    "amount price total value sum fee cost balance tax net gross paid spent bytes distance duration delay weight"
)
"""Sums of such fields say something."""
NO_AMOUNT = _words(
    "lat latitude lon lng longitude year month day hour minute second version rate share ratio"
)
"""Sums of such fields say nothing."""
ENTITY = _words(
    "card pan token account iban user customer client member merchant device terminal ip player patient vehicle plane "
    "tail tailnum sensor shop store seller buyer driver phone email host subscriber employee agent machine bin"
)
"""What has many events."""
ID = _words("id uuid guid key reference ref number no identifier")
OWN_ID = _words("tx txn transaction event message order payment request trace record row uuid guid")
"""An id of such a name is that of the event."""
ENUMERATION = _words(
    "type status state currency country channel method name description note comment message category kind op level "
    "version language locale city title text url"
)
"""What has few values, or no key."""

TIME_BEST = _words("ts timestamp occurred event")
TIME_GOOD = _words("time created at datetime when date scheduled departure")
TIME_OTHER = _words(
    "updated modified processed ingested received loaded expires expiry valid until due birth birthday dob end ended "
    "start delivered shipped"
)
"""Times of something else than the event."""
TIME = TIME_BEST | TIME_GOOD | TIME_OTHER | _words("epoch millis micros nanos started begin arrival valid")
"""Numbers of such names may be times."""
