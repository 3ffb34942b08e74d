// Preloaded into servers that would listen on every interface: the loopback and a free port only.
//
// Says `listening on URL` on stderr, and notes the method of every message that arrives in the
// file in NOTES.
const { Server } = require("node:net");
const http = require("node:http");
const { appendFileSync } = require("node:fs");

const listen = Server.prototype.listen;
Server.prototype.listen = function (...given) {
  const told = given.find((argument) => typeof argument === "function");
  if (told) this.once("listening", told);
  this.once("listening", () => {
    process.stderr.write(`listening on http://127.0.0.1:${this.address().port}\n`);
  });
  return listen.call(this, { host: "127.0.0.1", port: 0 });
};

const emit = http.IncomingMessage.prototype.emit;
http.IncomingMessage.prototype.emit = function (event, piece) {
  if (event === "data") {
    const method = /"method":"([^"]*)"/.exec(piece.toString());
    if (method) appendFileSync(process.env.NOTES, `${method[1]}\n`);
  }
  return emit.apply(this, arguments);
};
