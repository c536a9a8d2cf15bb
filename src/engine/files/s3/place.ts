/**
 * The bucket that a URL names, such as s3://bucket/prefix?endpoint=https://minio.example:9000&region=eu-1. The URL has no
 * credentials, and no error contains a part of it.
 */

export interface S3Place {
  readonly bucket: string;
  /** Before each key: empty, or ends with a slash. */
  readonly prefix: string;
  /** Without a slash at its end. */
  readonly endpoint: string;
  readonly region: string;
  /** The bucket is in the path of each URL, otherwise it is in the host. */
  readonly pathStyle: boolean;
}

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of temporary credentials. */
  readonly sessionToken?: string | undefined;
}

/** Why a URL names no bucket. */
export class S3UrlError extends Error {
  override readonly name = "S3UrlError";
}

export const S3_SCHEME = "s3://";

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
/** Keys of these characters look alike in a path, in a signature and in a list. */
const FOLDER = /^[A-Za-z0-9._-]+$/;
const MAX_PREFIX = 512;
const OPTIONS = ["endpoint", "region", "path_style"];

export function parseS3Url(text: string): S3Place {
  if (!URL.canParse(text)) throw new S3UrlError("is not a URL such as s3://bucket/prefix?region=eu-west-1");
  const { hostname: bucket, port, username, password, pathname, searchParams, hash } = new URL(text);
  if (username !== "" || password !== "")
    throw new S3UrlError(
      "must not have credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead",
    );
  if (!BUCKET.test(bucket) || port !== "" || hash !== "")
    throw new S3UrlError("must begin with the name of a bucket: s3://bucket");
  const folders = pathname.split("/").filter((one) => one !== "");
  if (pathname.length > MAX_PREFIX || !folders.every((one) => FOLDER.test(one) && !/^\.\.?$/.test(one)))
    throw new S3UrlError(`has a prefix with other characters than letters, digits, ".", "_", "-" and "/"`);
  for (const name of searchParams.keys()) {
    if (!OPTIONS.includes(name) || searchParams.getAll(name).length > 1)
      throw new S3UrlError(`may have after the "?", each once: ${OPTIONS.join(", ")}`);
  }
  const region = searchParams.get("region") ?? "us-east-1";
  if (!/^[A-Za-z0-9-]{1,64}$/.test(region)) throw new S3UrlError("has a region that is no name");
  const given = searchParams.get("endpoint");
  const endpoint = endpointOf(given ?? `https://s3.${region}.amazonaws.com`);
  // A name with dots does not match a wildcard certificate, and most servers besides Amazon's have one host name.
  const style = searchParams.get("path_style") ?? (given !== null || bucket.includes(".") ? "1" : "0");
  if (style !== "0" && style !== "1") throw new S3UrlError("has a path_style that is neither 0 nor 1");
  const prefix = folders.map((one) => `${one}/`).join("");
  return { bucket, prefix, endpoint, region, pathStyle: style === "1" };
}

function endpointOf(text: string): string {
  const problem = "has an endpoint that is no URL such as https://minio.example:9000";
  if (!URL.canParse(text)) throw new S3UrlError(problem);
  const { protocol, username, password, search, hash, origin, pathname } = new URL(text);
  if (!["http:", "https:"].includes(protocol) || username !== "" || password !== "" || search + hash !== "")
    throw new S3UrlError(problem);
  return `${origin}${pathname.replace(/\/$/, "")}`;
}

/** The URL of the bucket, to which a slash and a key may be added. */
export function bucketUrl({ bucket, endpoint, pathStyle }: S3Place): string {
  return pathStyle ? `${endpoint}/${bucket}` : endpoint.replace("://", `://${bucket}.`);
}
