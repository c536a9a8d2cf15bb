/**
 * Runs s3rver with one bucket: node run.mjs PACKAGES FOLDER BUCKET. Prints its port. s3rver believes every signature, so
 * they are checked here, with another implementation, and so is the hash of each body.
 */
import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { buffer } from "node:stream/consumers";

const [packages, directory, bucket] = process.argv.slice(2);
const require = createRequire(`${packages}/package.json`);
const S3rver = require("s3rver");
const aws4 = require("aws4");
const CREDENTIALS = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };

const app = new S3rver({ silent: true, directory, configureBuckets: [{ name: bucket }] });
await app.configureBuckets();
/** s3rver answers a PUT before its object is in the folder: a GET that follows at once may not find it. */
app.store.putObject = async ({ bucket, key, content, metadata }) => {
  const path = app.store.getResourcePath(bucket, key, "object");
  const bytes = Buffer.isBuffer(content) ? content : await buffer(content);
  const md5 = createHash("md5").update(bytes).digest("hex");
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, bytes);
  await app.store.putMetadata(bucket, key, metadata, md5);
  return { size: bytes.length, md5 };
};
const handle = app.callback();

function isSigned({ method, url, headers }) {
  const { authorization = "" } = headers;
  const [, region, names] =
    /Credential=[^/]+\/\d+\/([^/]+)\/.*SignedHeaders=([^,]+)/.exec(authorization) ?? [];
  if (names === undefined) return false;
  const signed = Object.fromEntries(names.split(";").map((name) => [name, headers[name]]));
  if (!("host" in signed && "x-amz-content-sha256" in signed)) return false;
  const request = { method, path: url, headers: signed, service: "s3", region, host: headers.host };
  return aws4.sign(request, CREDENTIALS).headers.Authorization === authorization.replaceAll(/,\s*/g, ", ");
}

function checkBody(incoming) {
  const hash = createHash("sha256");
  const push = incoming.push.bind(incoming);
  incoming.push = (chunk, encoding) => {
    if (chunk !== null) hash.update(chunk);
    else if (incoming.complete && hash.digest("hex") !== incoming.headers["x-amz-content-sha256"]) {
      process.stderr.write("a body has another hash than its request says\n");
      process.exit(1);
    }
    return push(chunk, encoding);
  };
}

const server = createServer((incoming, outgoing) => {
  if (!incoming.headers.authorization?.includes(`=${CREDENTIALS.accessKeyId}/`) || isSigned(incoming)) {
    checkBody(incoming);
    return handle(incoming, outgoing);
  }
  outgoing.writeHead(403, { "content-type": "application/xml" });
  outgoing.end("<Error><Code>SignatureDoesNotMatch</Code><Message>wrong</Message></Error>");
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
