/** Checks at the start that the bucket is there and that the key may list, write, read and delete in it. */
import { randomId } from "../../../redis/shards.ts";
import { StoreSetupError } from "../store.ts";
import type { S3Client, S3Error } from "./client.ts";
import { PieceBuffer } from "./piece-buffer.ts";
import type { S3Place } from "./place.ts";

/** Throws an {@link S3Error}. */
export async function probe(client: S3Client, prefix: string): Promise<void> {
  await client.list(prefix, null, 1);
  const key = `${prefix}errand-check-${randomId(16)}`;
  const buffer = new PieceBuffer(1);
  buffer.add(new Uint8Array(1));
  await client.put(key, buffer.take());
  const body = await client.get(key, { first: 0, last: 0 }, new AbortController().signal);
  body.destroy();
  await client.delete(key);
}

const KEY = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";

const REMEDIES: Readonly<Record<string, (place: S3Place) => string>> = {
  NoSuchBucket: () => "there is no such bucket; create it, or change ERRAND_FILES",
  InvalidBucketName: () => "the server takes no bucket of that name; change ERRAND_FILES",
  InvalidAccessKeyId: () => `the key is unknown; check ${KEY}`,
  SignatureDoesNotMatch: () => `the secret of the key is wrong; check ${KEY}`,
  ExpiredToken: () => "the temporary credentials have expired; set new ones",
  InvalidToken: () => "AWS_SESSION_TOKEN is wrong; set the one that belongs to the key, or unset it",
  AccessDenied: () => "the key may not list, write, read and delete there; check its rights",
  RequestTimeTooSkewed: () => "the clocks of this machine and the server differ; set them",
  AuthorizationHeaderMalformed: ({ region }) => `the bucket is not in the region ${region}; set region=`,
  PermanentRedirect: ({ region }) => `the bucket is not in the region ${region}; set region=`,
  AllAccessDisabled: () => "the bucket is disabled",
};

export function setupError({ status, code, isFull }: S3Error, place: S3Place): StoreSetupError {
  const byStatus =
    status === 301 ? "PermanentRedirect" : status === 401 || status === 403 ? "AccessDenied" : "";
  const remedy = (REMEDIES[code] ?? REMEDIES[byStatus])?.(place) ?? "check ERRAND_FILES";
  const answer = [status, code].filter((one) => one !== "").join(" ");
  const full = isFull ? "it is full; make room" : remedy;
  return new StoreSetupError(
    `the bucket ${place.bucket} at ${place.endpoint} cannot have the files (${answer}): ${full}`,
  );
}
