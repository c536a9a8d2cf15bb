/** The setting of a bucket, the list of its objects, and which of them are a content. */
import { expect, test } from "vitest";
import { ConfigError, readConfig } from "../../src/config.ts";
import { parsePage } from "../../src/engine/files/s3/object-list.ts";
import { PieceBuffer } from "../../src/engine/files/s3/piece-buffer.ts";
import { chainOf, endOf, pieceKey } from "../../src/engine/files/s3/pieces.ts";
import { bucketUrl, parseS3Url, S3UrlError } from "../../src/engine/files/s3/place.ts";
import { sha256 } from "../support/files.ts";

test("the URL of a bucket has its server, its region and its prefix", () => {
  const plain = parseS3Url("s3://files?region=eu-west-1");
  expect(plain).toEqual({
    bucket: "files",
    prefix: "",
    endpoint: "https://s3.eu-west-1.amazonaws.com",
    region: "eu-west-1",
    pathStyle: false,
  });
  expect(bucketUrl(plain)).toBe("https://files.s3.eu-west-1.amazonaws.com");
  const own = parseS3Url("s3://files/errand/prod/?endpoint=http://minio:9000");
  expect(own).toMatchObject({ prefix: "errand/prod/", region: "us-east-1", pathStyle: true });
  expect(bucketUrl(own)).toBe("http://minio:9000/files");
  const hosted = parseS3Url("s3://files?endpoint=https://s3.example&path_style=0");
  expect(bucketUrl(hosted)).toBe("https://files.s3.example");
  expect(parseS3Url("s3://my.files").pathStyle).toBe(true);
});

test.each([
  ["s3://key:secret@files", "AWS_ACCESS_KEY_ID"],
  ["s3://F", "name of a bucket"],
  ["s3://files/../x%20y", "prefix"],
  ["s3://files?endpoint=ftp://secret", "endpoint"],
  ["s3://files?endpoint=https://me:secret@minio", "endpoint"],
  ["s3://files?secret=1", "endpoint, region, path_style"],
  ["s3://files?region=secret!", "region"],
  ["s3://files?path_style=yes", "path_style"],
])("%s is refused without a part of it", (url, reason) => {
  expect(() => parseS3Url(url)).toThrow(S3UrlError);
  expect(() => parseS3Url(url)).toThrow(reason);
  expect(() => parseS3Url(url)).not.toThrow(/me:|secret[^s]*$/);
});

test("the key comes from the usual variables, only for a bucket, and no error contains it", () => {
  const AWS = { AWS_ACCESS_KEY_ID: "AKIA", AWS_SECRET_ACCESS_KEY: "s3cret" };
  const ERRAND_FILES = "s3://files";
  expect(readConfig({ ...AWS, AWS_SESSION_TOKEN: "", ERRAND_FILES }).s3Credentials).toEqual({
    accessKeyId: "AKIA",
    secretAccessKey: "s3cret",
    sessionToken: undefined,
  });
  expect(JSON.stringify(readConfig({ ...AWS, ERRAND_FILES: "/srv/files" }))).not.toContain("s3cret");
  const problemsOf = (env: Record<string, string>): readonly string[] => {
    try {
      readConfig(env);
      return [];
    } catch (error) {
      return error instanceof ConfigError ? error.problems : [String(error)];
    }
  };
  expect(problemsOf({ ERRAND_FILES })).toEqual([
    "AWS_ACCESS_KEY_ID: must be set, for the bucket in ERRAND_FILES",
    "AWS_SECRET_ACCESS_KEY: must be set, for the bucket in ERRAND_FILES",
  ]);
  expect(problemsOf({ ERRAND_FILES, ...AWS, AWS_SECRET_ACCESS_KEY: "s3 cret" })).toEqual([
    "AWS_SECRET_ACCESS_KEY: must be printable characters without spaces",
  ]);
  expect(problemsOf({ ERRAND_FILES: "s3://key:s3cret@files", ...AWS })).toEqual([
    "ERRAND_FILES: must not have credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead",
  ]);
});

test("a page of a list is read with its escapes; another answer is none", () => {
  const entry = (key: string, size: number) =>
    `<Contents><Key>${key}</Key><LastModified>x</LastModified><Size>${size}</Size><Owner><ID>1</ID></Owner></Contents>`;
  const page = (rest: string) =>
    `<?xml version="1.0"?><ListBucketResult xmlns="x"><Name>b</Name>${rest}</ListBucketResult>`;
  expect(parsePage(page(entry("a&amp;b/&#x31;&#50;", 7) + entry("c", 0)))).toEqual({
    objects: [
      { key: "a&b/12", size: 7 },
      { key: "c", size: 0 },
    ],
    next: null,
  });
  expect(parsePage(page("<NextContinuationToken>t+/=&gt;</NextContinuationToken>"))).toEqual({
    objects: [],
    next: "t+/=>",
  });
  expect(() => parsePage("<html>sign in</html>")).toThrow("something else than a list");
  expect(() => parsePage(page("<Contents><Key>a</Key></Contents>"))).toThrow("cannot be read");
});

test("a content is the longest chain of pieces; a late one neither shortens nor changes it", () => {
  const at = (offset: number, size: number, age: number) => ({
    key: pieceKey("p/upl_1/", offset, age),
    size,
  });
  const [first, second] = [at(0, 8, 1), at(8, 4, 2)];
  const keysOf = (objects: (typeof first)[]) => chainOf(objects).map(({ key }) => key);
  expect(endOf(chainOf([]))).toBe(0);
  expect(keysOf([second, first])).toEqual([first.key, second.key]);
  // From requests that were thought dead: shorter, equal, beyond a gap, and beside the pieces.
  const late = [at(0, 5, 9), at(0, 8, 9), at(8, 4, 9), at(20, 9, 9), { key: "p/upl_1/notes", size: 3 }];
  expect(keysOf([...late, first, second])).toEqual([first.key, second.key]);
  // Written again with what follows.
  const longer = at(8, 6, 3);
  expect(endOf(chainOf([first, second, longer]))).toBe(14);
  expect(keysOf([first, second, longer])).toEqual([first.key, longer.key]);
  // Two requests took turns.
  expect(keysOf([at(0, 3, 1), first, at(3, 2, 4), second])).toEqual([first.key, second.key]);
});

test("a buffer takes what it has room for, from chunks of any size", () => {
  const bytes = Uint8Array.from({ length: 200_000 }, (_, at) => at % 251);
  const buffer = new PieceBuffer(150_000);
  let rest: Uint8Array = bytes;
  for (let at = 0; at < bytes.length; at += 70_001) rest = buffer.add(bytes.subarray(at, at + 70_001));
  expect([buffer.isFull, rest.length]).toEqual([true, 50_000]);
  const { blocks, size, sha256: hash } = buffer.take();
  expect(size).toBe(150_000);
  expect(Buffer.concat(blocks).equals(bytes.subarray(0, 150_000))).toBe(true);
  expect(hash).toBe(sha256(bytes.subarray(0, 150_000)));
  expect([buffer.size, buffer.take().blocks]).toEqual([0, []]);
});
