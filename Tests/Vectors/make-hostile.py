#!/usr/bin/env python3
"""Makes hostile.json: objects that an honest writer never makes, as a present member could.

Independent of the Swift code: CBOR, BLAKE2b and names are written out here after docs/format.md; only the cipher and
X25519 come from libsodium. Run it again and the file does not change.
"""
import ctypes
import ctypes.util
import hashlib
import json
import os

sodium = ctypes.CDLL(ctypes.util.find_library("sodium") or "libsodium.so.23")
sodium.sodium_init()
P = 2**130 - 5


def head(major, n):
    if n < 24:
        return bytes([major << 5 | n])
    for extra, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if n < 1 << 8 * width:
            return bytes([major << 5 | extra]) + n.to_bytes(width, "big")
    raise ValueError(n)


def cbor(x):
    if isinstance(x, int):
        return head(0, x)
    if isinstance(x, bytes):
        return head(2, len(x)) + x
    if isinstance(x, str):
        return head(3, len(x.encode())) + x.encode()
    return head(4, len(x)) + b"".join(map(cbor, x))


def h(n, purpose, *parts, key=b""):
    return hashlib.blake2b(cbor(["latchkey/1/" + purpose, *parts]), digest_size=n, key=key).digest()


def seeded(label, n):
    return hashlib.shake_256(b"latchkey hostile " + label.encode()).digest(n)


def poly_key(key, nonce):
    out = ctypes.create_string_buffer(32)
    sodium.crypto_stream_xchacha20(out, ctypes.c_ulonglong(32), nonce, key)
    r = int.from_bytes(out.raw[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    return r, int.from_bytes(out.raw[16:], "little")


def keystream(key, nonce, n):
    """The stream that the message is XORed with: it begins at the second block."""
    out = ctypes.create_string_buffer(64 + n)
    sodium.crypto_stream_xchacha20(out, ctypes.c_ulonglong(64 + n), nonce, key)
    return out.raw[64:]


def opens(key, nonce, ad, ciphertext):
    out = ctypes.create_string_buffer(len(ciphertext))
    return sodium.crypto_aead_xchacha20poly1305_ietf_decrypt(
        out, None, None, ciphertext, ctypes.c_ulonglong(len(ciphertext)), ad, ctypes.c_ulonglong(len(ad)), nonce, key) == 0


def two_key_ciphertext(k1, k2, nonce, ad, length):
    """A ciphertext of `length` (a multiple of 16) whose tag holds under both keys; well-formed content under the first.

    Poly1305 is a polynomial in r over the blocks. All blocks but the last two of the text are chosen freely, the last
    two solve two linear equations: one tag, two keys.
    """
    (r1, s1), (r2, s2) = poly_key(k1, nonce), poly_key(k2, nonce)
    stream = keystream(k1, nonce, length)
    wanted = (length - 4).to_bytes(4, "big") + b"This opens under two keys. ".ljust(length - 4, b".")
    fixed = bytes(a ^ b for a, b in zip(stream, wanted))[:length - 32]
    pad = lambda b: b + bytes(-len(b) % 16)
    lengths = len(ad).to_bytes(8, "little") + length.to_bytes(8, "little")
    before = pad(ad) + fixed
    blocks = [int.from_bytes(before[i:i + 16], "little") + 2**128 for i in range(0, len(before), 16)]
    last = int.from_bytes(lengths, "little") + 2**128
    for attempt in range(1000):
        tag = int.from_bytes(seeded(f"tag {attempt}", 16), "little")
        right = []
        for r, s in ((r1, s1), (r2, s2)):
            acc = 0
            for block in blocks:
                acc = (acc + block) * r % P
            # acc*r^3 + x*r^3 + y*r^2 + last*r = tag - s, one of the values mod 2^128
            right.append(((tag - s) % 2**128 - last * r - acc * r**3) % P)
        a, b, c, d = pow(r1, 3, P), pow(r1, 2, P), pow(r2, 3, P), pow(r2, 2, P)
        inverse = pow(a * d - b * c, -1, P)
        x = (right[0] * d - right[1] * b) * inverse % P
        y = (a * right[1] - c * right[0]) * inverse % P
        if all(2**128 <= v < 2**129 for v in (x, y)):
            return before[len(pad(ad)):] + b"".join((v - 2**128).to_bytes(16, "little") for v in (x, y)) + tag.to_bytes(16, "little")
    raise SystemExit("no solution found")


def envelope_case():
    household, epoch, zone = seeded("household", 32), seeded("epoch", 32), seeded("zone", 16)
    name = "l/00/" + "0" * 30
    nonce = seeded("nonce", 24)
    keys = [seeded("zone key 1", 32), seeded("zone key 2", 32)]
    ad = cbor(["latchkey/1/ad", 1, 1, "l", household, epoch, zone, name])
    okm = [h(64, "envelope", ad, nonce, key=k) for k in keys]
    length = 4096 - 61 - 16
    length -= length % 16
    ciphertext = two_key_ciphertext(okm[0][32:], okm[1][32:], nonce, ad, length)
    assert opens(okm[0][32:], nonce, ad, ciphertext) and opens(okm[1][32:], nonce, ad, ciphertext)
    objects = [b"LK\x01\x01l" + nonce + o[:32] + ciphertext for o in okm]
    return {
        "household": household.hex(), "epoch": epoch.hex(), "zone": zone.hex(), "name": name, "kind": "l",
        "zone_keys": [k.hex() for k in keys],
        "object_committed_to_first": objects[0].hex(), "object_committed_to_second": objects[1].hex(),
    }


def padding_cases():
    """Objects with the right key and place whose inside is not of the stated form."""
    household, epoch, zone = seeded("household", 32), seeded("epoch", 32), seeded("zone", 16)
    key, nonce, name = seeded("zone key 1", 32), seeded("padding nonce", 24), "l/00/" + "0" * 30
    ad = cbor(["latchkey/1/ad", 1, 1, "l", household, epoch, zone, name])
    okm = h(64, "envelope", ad, nonce, key=key)

    def sealed(plain):
        out = ctypes.create_string_buffer(len(plain) + 16)
        sodium.crypto_aead_xchacha20poly1305_ietf_encrypt(
            out, None, plain, ctypes.c_ulonglong(len(plain)), ad, ctypes.c_ulonglong(len(ad)), None, nonce, okm[32:])
        return (b"LK\x01\x01l" + nonce + okm[:32] + out.raw).hex()

    room = 4096 - 61 - 16
    return {
        "sound": sealed((3).to_bytes(4, "big") + b"abc" + bytes(room - 7)),
        "last_byte_not_zero": sealed((3).to_bytes(4, "big") + b"abc" + bytes(room - 8) + b"\x01"),
        "first_byte_not_zero": sealed((3).to_bytes(4, "big") + b"abc\x01" + bytes(room - 8)),
        "length_one_too_long": sealed((room - 3).to_bytes(4, "big") + bytes(room - 4)),
        "length_huge": sealed(b"\xff" * 4 + bytes(room - 4)),
    }


def seal_case():
    key, recipient, ephemeral = seeded("sealed key", 32), seeded("recipient", 32), seeded("ephemeral", 32)

    def public(secret):
        out = ctypes.create_string_buffer(32)
        sodium.crypto_scalarmult_base(out, secret)
        return out.raw

    def seal(secret):
        e, r = public(secret), public(recipient)
        out = ctypes.create_string_buffer(48)
        sodium.crypto_box_easy(out, key, ctypes.c_ulonglong(32), h(24, "seal-nonce", e, r), r, secret)
        return (e + out.raw).hex()

    return {
        "key": key.hex(), "recipient_secret": recipient.hex(), "recipient": public(recipient).hex(),
        "seal": seal(h(32, "seal-key", public(recipient), key=key)), "seal_of_own_making": seal(ephemeral),
    }


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "hostile.json"), "w") as f:
        cases = {"two_key_object": envelope_case(), "padding": padding_cases(), "seal": seal_case()}
        json.dump(cases, f, indent=1, sort_keys=True)
        f.write("\n")
