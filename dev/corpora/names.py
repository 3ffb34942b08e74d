"""A DNS server with the answers of a row, and a certificate for a name, both for a namespace."""

import ipaddress
import socket
import ssl
import struct
import subprocess
import threading

A, AAAA = 1, 28


class Server:
    """Answers every question on 127.0.0.1:53 with the addresses that were set last."""

    def __init__(self):
        self.answers, self.more, self.asked = [[]], {}, 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def set(self, answers):
        """Sets lists of addresses: the first is for the first lookup, the last for all that follow."""
        self.answers, self.asked = answers, 0

    def serve(self):
        while True:
            data, peer = self.socket.recvfrom(4096)
            try:
                self.socket.sendto(self.reply(data), peer)
            except (OSError, ValueError, IndexError, struct.error):
                continue

    def reply(self, data):
        at, labels = 12, []
        while data[at]:
            labels.append(data[at + 1:at + 1 + data[at]])
            at += data[at] + 1
        question = data[12:at + 5]
        (kind,) = struct.unpack(">H", data[at + 1:at + 3])
        name = b".".join(labels).decode("latin-1").lower()
        found = [self.more[name]] if name in self.more else self.answers
        step = min(self.asked, len(found) - 1)
        # An A question counts as the lookup; the AAAA question beside it does not.
        if kind == A and name not in self.more:
            self.asked += 1
        addresses = [ipaddress.ip_address(text) for text in found[step]]
        version = {A: 4, AAAA: 6}.get(kind)
        wanted = [address.packed for address in addresses if address.version == version]
        head = data[:2] + struct.pack(">HHHHH", 0x8180, 1, len(wanted), 0, 0)
        records = b"".join(struct.pack(">HHHIH", 0xC00C, kind, 1, 0, len(packed)) + packed for packed in wanted)
        return head + question + records


def certificate(folder, name):
    """A TLS context for a server of this name, and the variables that make its issuer known."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    authority_key, authority = folder / "ca-key.pem", folder / "ca.pem"
    request, extensions = folder / "request.pem", folder / "extensions"
    extensions.write_text(f"subjectAltName=DNS:{name}\nbasicConstraints=CA:FALSE\n")
    new = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for command in (
        [*new, "-x509", "-subj", "/CN=attacks", "-days", "2", "-keyout", authority_key, "-out", authority],
        [*new, "-subj", f"/CN={name}", "-keyout", key, "-out", request],
        ["openssl", "x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority_key, "-CAcreateserial",
         "-days", "2", "-extfile", extensions, "-out", cert],
    ):
        subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context, {"SSL_CERT_FILE": str(authority)}
