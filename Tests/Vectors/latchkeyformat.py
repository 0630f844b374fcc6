"""Encoding, hashes, names, envelopes, certificates and log entries: docs/format.md sections 1 to 4, 6 and 7, written from it.

Nothing here is shared with the Swift code. libsodium comes in through PyNaCl, BLAKE2b from Python, zstd from `zstandard`.
"""
import hashlib
import hmac
import re
import struct
from collections import namedtuple

import zstandard
from nacl import bindings as sodium
from nacl.exceptions import CryptoError

ROSTER = bytes(16)  # the zone id of the roster
INT64 = range(-2**63, 2**63)
MIB = 1 << 20


class Damaged(Exception):
    """Not what the format says, or not signed by whom it should be."""


class Newer(Exception):
    """Written by a newer version."""


def need(condition, what):
    if not condition:
        raise Damaged(what)


# ---- section 1: CBOR, hash, signature, base 32 ----------------------------------------------------------------------
Tag = namedtuple("Tag", "number value")
Map = namedtuple("Map", "pairs")  # only newer versions write them


def head(major, number):
    for low, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 24:
            return bytes([major << 5 | number])
        if number < 1 << 8 * width:
            return bytes([major << 5 | low]) + number.to_bytes(width, "big")
    raise ValueError(number)


def encode(value):
    """Deterministic CBOR. Text is `str`, byte strings are `bytes`."""
    if value is None or isinstance(value, bool):
        return {None: b"\xf6", True: b"\xf5", False: b"\xf4"}[value]
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, float):
        return b"\xfb" + struct.pack(">d", value)
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, Tag):
        return head(6, value.number) + encode(value.value)
    if isinstance(value, Map):
        return head(5, len(value.pairs)) + b"".join(encode(x) for pair in value.pairs for x in pair)
    return head(4, len(value)) + b"".join(map(encode, value))


class Decoder:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        need(self.at + count <= len(self.data), "CBOR is cut off")
        self.at += count
        return self.data[self.at - count:self.at]

    def item(self, depth=0):
        need(depth <= 32, "CBOR is nested too deep")
        first = self.take(1)[0]
        major, low = first >> 5, first & 31
        if major == 7:
            if low == 27:
                return struct.unpack(">d", self.take(8))[0]
            need(low in (20, 21, 22), "a CBOR form that is not used")
            return {20: False, 21: True, 22: None}[low]
        number = low
        if low >= 24:
            need(low < 28, "an indefinite CBOR length")
            number = int.from_bytes(self.take(1 << low - 24), "big")
            need(number >= (24, 1 << 8, 1 << 16, 1 << 32)[low - 24], "a CBOR head that is not the shortest")
        if major == 0:
            return number
        if major == 1:
            return -1 - number
        if major == 2:
            return bytes(self.take(number))
        if major == 3:
            try:
                return str(self.take(number), "utf-8")
            except UnicodeDecodeError:
                raise Damaged("CBOR text that is not UTF-8") from None
        if major == 4:
            need(number <= len(self.data) - self.at, "CBOR is cut off")
            return [self.item(depth + 1) for _ in range(number)]
        if major == 5:
            need(number <= len(self.data) - self.at, "CBOR is cut off")
            pairs = [(self.item(depth + 1), self.item(depth + 1)) for _ in range(number)]
            ascending([encode(key) for key, _ in pairs], "the keys of a CBOR map")
            return Map(pairs)
        return Tag(number, self.item(depth + 1))


def decode(data):
    decoder = Decoder(data)
    value = decoder.item()
    need(decoder.at == len(data), "bytes after the CBOR")
    return value


def fields(value, *kinds, what="array"):
    """The elements of an array, which must be as many and of these kinds: a length for bytes, or a type, or None for any."""
    need(isinstance(value, list) and len(value) == len(kinds), f"{what}: not an array of {len(kinds)}")
    for item, kind in zip(value, kinds):
        if kind is None:
            continue
        if isinstance(kind, bool) or isinstance(kind, type):
            need(type(item) is kind, f"{what}: {item!r} is not of type {kind.__name__}")
            need(kind is not int or item >= 0, f"{what}: a negative number")
        else:
            need(isinstance(item, bytes) and len(item) == kind, f"{what}: not {kind} bytes")
    return value


def versioned(value, what):
    """The array after its version, which is 1."""
    need(isinstance(value, list) and value and type(value[0]) is int, f"{what}: no version")
    if value[0] > 1:
        raise Newer(f"{what} of version {value[0]}")
    need(value[0] == 1, f"{what}: version {value[0]}")
    return value[1:]


def ascending(items, what):
    need(all(a < b for a, b in zip(items, items[1:])), f"{what} are not strictly ascending")
    return items


def each(items, size, what):
    """The elements of an array, all of them byte strings of this size."""
    return fields(items, *[size] * len(items), what=what)


def h(size, purpose, *parts, key=b""):
    data = encode(["latchkey/1/" + purpose, *parts])
    return hashlib.blake2b(data, digest_size=size, key=key).digest()


def verifies(public, purpose, body, signature):
    message = b"latchkey/1/sign/" + purpose.encode() + h(32, purpose, body)
    try:
        return sodium.crypto_sign_open(signature + message, public) == message
    except CryptoError:
        return False


DIGITS = "0123456789abcdefghijklmnopqrstuv"


def base32(data):
    bits = len(data) * 8
    fill = -bits % 5
    number = int.from_bytes(data, "big") << fill
    return "".join(DIGITS[number >> shift & 31] for shift in range(bits + fill - 5, -1, -5))


def counter(number):
    return "".join(DIGITS[number >> shift & 31] for shift in range(60, -1, -5))


# ---- section 2: devices and certificates ----------------------------------------------------------------------------
Certificate = namedtuple("Certificate", "device person sign box signer body by_signer by_device")


def certificate(item):
    """Reads one and checks the device's own signature: who it is, not yet whether anybody vouches for it."""
    body, by_signer, by_device = fields(item, bytes, 64, 64, what="certificate")
    person, sign, box, signer = fields(versioned(decode(body), "certificate"), 16, 32, 32, 16, what="certificate")
    need(verifies(sign, "certificate", body, by_device), "a certificate is not signed by its device")
    return Certificate(h(16, "device", sign, box), person, sign, box, signer, body, by_signer, by_device)


def vouched(cert, signer):
    return cert.signer == signer.device and cert.person == signer.person and verifies(
        signer.sign, "certificate", cert.body, cert.by_signer)


def chain(items):
    """The certificates of a chain that holds; the last is the device in question."""
    need(isinstance(items, list) and 1 <= len(items) <= 16, "a chain of 1 to 16 certificates")
    certs = [certificate(item) for item in items]
    first = certs[0]
    need(first.person == h(16, "person", first.sign, first.box), "a chain does not begin with the person's first device")
    need(first.by_signer == first.by_device and vouched(first, first), "a chain's first certificate is not self-signed")
    for number, cert in enumerate(certs[1:], 1):
        need(cert.device not in [c.device for c in certs[:number]], "a device twice in a chain")
        need(any(vouched(cert, earlier) for earlier in certs[:number]), "a chain that nobody in it vouches for")
    return certs


# ---- section 3: names -----------------------------------------------------------------------------------------------
NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(/[a-z0-9]([a-z0-9-]*[a-z0-9])?){0,3}")


def is_name(text):
    return len(text) <= 120 and NAME.fullmatch(text) is not None


def sharded(kind, tag):
    text = base32(tag)
    return f"{kind}/{text[:2]}/{text[2:]}"


class Epoch:
    """The names and keys that derive from one epoch's key."""

    def __init__(self, household, epoch, key):
        self.household, self.id, self.key = household, epoch, key
        self.names = h(32, "names", key=key)

    def prefix(self, zone):
        return base32(h(20, "prefix", zone, key=self.names))

    def zone_key(self, zone):
        return h(32, "zone", self.household, self.id, zone, key=self.key)

    def head(self, zone, device, incarnation, number):
        return "h/" + base32(h(20, "head-tag", zone, device, incarnation, key=self.names)) + "-" + counter(number)

    def segment(self, zone, device, incarnation, index):
        return sharded("l", h(20, "segment-tag", zone, device, incarnation, index, key=self.names))

    def next(self, device, incarnation, sequence):
        return sharded("n", h(20, "next-tag", device, incarnation, sequence, key=self.names))

    def open(self, data, zone, name):
        """The content of the object at `name` below the zone's prefix."""
        return open_object(data, (self.household, self.id, zone), name, self.zone_key(zone))


# ---- section 4: envelope --------------------------------------------------------------------------------------------
OVERHEAD = 5 + 24 + 32 + 4 + 16
LARGEST = {"h": 16 * MIB, "c": 64 << 10, "i": 64 << 10, "k": 64 << 10}


def open_object(data, place, name, zone_key):
    kind = name[0]
    need(data[:2] == b"LK" and len(data) >= 4, "not a Latchkey object")
    if data[2] != 1 or data[3] != 1:
        raise Newer(f"envelope version {data[2]}, suite {data[3]}")
    need(data[4:5] == kind.encode(), "an object of another kind")
    need(len(data) >= OVERHEAD, "an object that is cut off")
    need(len(data) <= LARGEST.get(kind, 64 * MIB), "an object that is too large")
    nonce, commitment, sealed = data[5:29], data[29:61], data[61:]
    ad = encode(["latchkey/1/ad", 1, 1, kind, *place, name])
    okm = h(64, "envelope", ad, nonce, key=zone_key)
    need(hmac.compare_digest(okm[:32], commitment), "sealed with another key, or for another place")
    try:
        plain = sodium.crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, ad, nonce, okm[32:])
    except CryptoError:
        raise Damaged("altered: its tag is wrong") from None
    length = int.from_bytes(plain[:4], "big")
    need(4 + length <= len(plain) and not any(plain[4 + length:]), "padding that is not zero")
    return plain[4:4 + length]


# ---- section 6: entries ---------------------------------------------------------------------------------------------
class Entry:
    """A stored entry: what was signed, and the payload in its stored form. The signature is checked by `verify`."""

    def __init__(self, item):
        self.body, self.signature, self.form, self.stored = fields(item, bytes, 64, int, bytes, what="entry")
        body = versioned(decode(self.body), "entry")
        (self.household, self.zone, self.device, self.incarnation, self.sequence, self.previous, self.heads, group,
         self.payload_hash, self.length) = fields(body, 32, 16, 16, 8, int, None, list, list, 32, int, what="entry")
        self.hlc, self.tie, self.part, self.parts = fields(group, int, 8, int, int, what="group")
        need(self.sequence >= 1 and (self.sequence == 1) == (self.previous is None), "an entry's place in its chain")
        need(self.part < self.parts <= 4096, "an entry's place in its group")
        need(self.previous is None or type(self.previous) is bytes and len(self.previous) == 32, "an entry's predecessor")
        need(len(self.heads) <= 256, "more than 256 roster heads")
        ascending(each(self.heads, 32, "an entry's heads"), "an entry's heads")
        need(self.form in (0, 1) and self.length <= 32 * MIB, "an entry's form or length")
        self.hash = h(32, "entry", self.body)
        self.origin = (self.device, self.incarnation)

    def verify(self, identities):
        known = identities.get(self.device)
        need(known is not None, "an author whom no certificate names")
        need(verifies(known.sign, "entry", self.body, self.signature), "a signature that is not its author's")

    def payload(self):
        plain = self.stored
        if self.form == 1:
            try:
                stated = zstandard.frame_content_size(plain)
                need(stated == self.length, "a frame that does not state the signed length")
                unzip = zstandard.ZstdDecompressor().decompressobj()
                plain = unzip.decompress(plain)
            except zstandard.ZstdError:
                raise Damaged("a frame that cannot be decompressed") from None
            need(unzip.eof and not unzip.unused_data, "a frame that is cut off, or bytes after it")
        need(len(plain) == self.length and h(32, "payload", plain) == self.payload_hash, "a payload that was not signed")
        return plain


# ---- section 7: heads and segments ----------------------------------------------------------------------------------
class Head:
    def __init__(self, content):
        self.body, self.signature, tail = fields(decode(content), bytes, 64, list, what="head")
        (self.household, self.epoch, self.zone, self.device, self.incarnation, self.counter, self.first_segment,
         self.last_segment, self.in_segments, self.last, self.last_hash, self.base, self.vector, self.heads, self.hlc,
         self.digest, self.waiting, self.former) = fields(
             versioned(decode(self.body), "head"), 32, 32, 16, 16, 8, int, int, int, int, int, 32, None, list, list, int,
             32, list, None, what="head")
        self.former = self.former and tuple(fields(self.former, 32, int, int, 32, what="former part"))
        begin = self.former[2] if self.former else 0
        need(self.in_segments > begin if self.last_segment else self.in_segments == begin, "where a head's part begins")
        need(self.first_segment >= 1 or not self.last_segment, "a head's segments")
        self.tail = [Entry(item) for item in tail]
        need(1 <= self.counter and 1 <= self.last and self.in_segments <= self.last, "a head's numbers")
        self.origin = (self.device, self.incarnation)

    def verify(self, identities):
        known = identities.get(self.device)
        need(known is not None, "an author whom no certificate names")
        need(verifies(known.sign, "head", self.body, self.signature), "a signature that is not its author's")


def segment_entries(content, device, incarnation, zone, index):
    segment = fields(versioned(decode(content), "segment"), 16, 8, 16, int, int, list, what="segment")
    need(segment[:4] == [device, incarnation, zone, index], "a segment that belongs elsewhere")
    entries = [Entry(item) for item in segment[5]]
    need([e.sequence for e in entries] == list(range(segment[4], segment[4] + len(entries))), "a segment's sequence")
    return entries


# ---- section 8: seals, boxes, kits ----------------------------------------------------------------------------------
def commitment(key, parents):
    return h(32, "commitment", parents, key=key)


def seal(key, recipient):
    """What everybody who holds the key computes for a box public key; zeros if nothing can be sealed to it."""
    ephemeral = h(32, "seal-key", recipient, key=key)
    public = sodium.crypto_scalarmult_base(ephemeral)
    try:
        return public + sodium.crypto_box_easy(key, h(24, "seal-nonce", public, recipient), recipient, ephemeral)
    except CryptoError:
        return bytes(80)


def open_seal(sealed, box_public, box_secret):
    """The key in a seal, if it is the seal that everybody computes."""
    try:
        key = sodium.crypto_box_open_easy(sealed[32:], h(24, "seal-nonce", sealed[:32], box_public), sealed[:32], box_secret)
    except CryptoError:
        return None
    return key if len(key) == 32 and seal(key, box_public) == sealed else None


def open_box(box, nonce, epoch, outer_key):
    """A former epoch's key, kept under a later one's."""
    try:
        return sodium.crypto_aead_xchacha20poly1305_ietf_decrypt(box, epoch, nonce, h(32, "former", epoch, key=outer_key))
    except CryptoError:
        return None


def derived(secret, number, context):
    """libsodium's crypto_kdf_derive_from_key: BLAKE2b with the number as salt and the context as personalisation."""
    return hashlib.blake2b(
        b"", digest_size=32, key=secret, salt=number.to_bytes(8, "little") + bytes(8),
        person=context.encode() + bytes(8)).digest()


class Kit:
    """A device on paper: what derives from 24 words."""

    def __init__(self, text, listed):
        numbered = dict(reversed(re.findall(r"(?<!\S)([0-9]+)\.\s+([a-z]+)", text.lower())))  # the page that is printed
        words = [numbered.get(str(number)) for number in range(1, 25)]
        if None in words:
            words = [w for w in re.split(r"[^a-z0-9]+", text.lower()) if w and not w.isdigit()]
        need(len(words) == 24, f"a recovery phrase has 24 words, not {len(words)}")
        for number, word in enumerate(words, 1):
            need(word in listed, f"word {number} is none of docs/words.txt: {word}")
        bits = int("".join(f"{listed.index(word):011b}" for word in words), 2).to_bytes(33, "big")
        seed = bits[:32]
        need(h(16, "kit-checksum", key=seed)[:1] == bits[32:], "the words do not belong together: two or more are wrong")
        self.sign, _ = sodium.crypto_sign_seed_keypair(derived(seed, 1, "lk1-kit-"))
        self.box, self.box_secret = sodium.crypto_box_seed_keypair(derived(seed, 2, "lk1-kit-"))
        self.names, self.blob_key = derived(seed, 3, "lk1-kit-"), derived(seed, 4, "lk1-kit-")
        self.device = h(16, "device", self.sign, self.box)
        self.prefix = base32(h(20, "prefix", ROSTER, key=self.names))

    def open_blob(self, data, name):
        """(household, epoch, key, roster heads, household's name)"""
        content = open_object(data, (bytes(32), bytes(32), bytes(16)), name, self.blob_key)
        household, epoch, sealed, heads, title, _ = fields(
            versioned(decode(content), "kit"), 32, 32, 80, list, str, bool, what="kit")
        need(name == sharded("k", h(20, "kit-tag", household, epoch, key=self.names)), "a kit blob under another's name")
        key = open_seal(sealed, self.box, self.box_secret)
        need(key is not None, "a kit blob's seal does not open")
        return household, epoch, key, heads, title
