/**
 * A push service and a browser of the test's own: it keeps the bytes that arrive, and decrypts them with node:crypto, as RFC
 * 8291 section 3.4 and RFC 8188 say, and with nothing of what encrypts them.
 */
import { createDecipheriv, createECDH, createHmac, randomBytes } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { listen } from "./listen.ts";

interface Push {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export async function startPushService(answer: () => number = () => 201) {
  const received: Push[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({ headers: request.headers, body: Buffer.concat(chunks) });
    response.writeHead(answer()).end();
  });
  const port = await listen(server);
  const origin = `http://127.0.0.1:${port}`;
  return { origin, url: `${origin}/push/SECRET-PATH`, received };
}

const hmac = (key: Buffer, ...data: (Buffer | string)[]): Buffer => {
  const made = createHmac("sha256", key);
  for (const one of data) made.update(one);
  return made.digest();
};

/** The keys of a browser; by default new ones. */
export function browserKeys(given?: { readonly privateKey: string; readonly auth: string }) {
  const ecdh = createECDH("prime256v1");
  if (given) ecdh.setPrivateKey(given.privateKey, "base64url");
  else ecdh.generateKeys();
  const own = ecdh.getPublicKey();
  const auth = given ? Buffer.from(given.auth, "base64url") : randomBytes(16);
  const decrypt = (body: Buffer): string => {
    const salt = body.subarray(0, 16);
    const recordSize = body.readUInt32BE(16);
    const sender = body.subarray(21, 21 + body.readUInt8(20));
    const record = body.subarray(21 + sender.length);
    if (record.length > recordSize) throw new Error("more than one record");
    const keyPrk = hmac(auth, ecdh.computeSecret(sender));
    const input = hmac(keyPrk, "WebPush: info\0", own, sender, "\x01");
    const prk = hmac(salt, input);
    const key = hmac(prk, "Content-Encoding: aes128gcm\0\x01").subarray(0, 16);
    const nonce = hmac(prk, "Content-Encoding: nonce\0\x01").subarray(0, 12);
    const decipher = createDecipheriv("aes-128-gcm", key, nonce);
    decipher.setAuthTag(record.subarray(-16));
    const padded = Buffer.concat([decipher.update(record.subarray(0, -16)), decipher.final()]);
    const end = padded.lastIndexOf(2);
    if (end === -1 || padded.subarray(end + 1).some((byte) => byte !== 0)) throw new Error("no last record");
    return padded.subarray(0, end).toString();
  };
  return { p256dh: own.toString("base64url"), auth: auth.toString("base64url"), decrypt };
}
