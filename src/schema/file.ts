/** Files that messages and artifacts name by their URL: content of any size, stored beside Redis. */
import * as z from "zod";
import { instantSchema } from "./values.ts";

export const FILE_ID = /^fil_[0-9a-f]{16}_[0-9a-f]{64}$/;
/**
 * The id of a file: `fil_`, its owner's mark, and the SHA-256 of its content in hex. The same content of the same owner has
 * the same id. It is no credential: the token decides.
 */
export const fileIdSchema = z.string().regex(FILE_ID, "not a file id");
export const UPLOAD_ID = /^upl_[0-9a-z]{26}$/;
/** The id of an upload, `upl_…`. */
export const uploadIdSchema = z.string().regex(UPLOAD_ID, "not an upload id");
/** The SHA-256 of a content: 64 hexadecimal digits. */
export const sha256Schema = z.string().regex(/^[0-9a-f]{64}$/, "not a SHA-256: 64 hexadecimal digits");

export const fileSchema = z.object({
  /** Identifies the file. */
  id: fileIdSchema,
  /** Where it is. As the `url` of a part it names the file: all who may read the message may then download it. */
  url: z.string(),
  /** How large it is, in bytes. */
  size: z.int().min(0),
  /** The SHA-256 of its content. */
  sha256: sha256Schema,
  /** When its upload was complete. */
  created_at: instantSchema,
  /** Until when it is kept if no delegation names it. A delegation that names it keeps it. */
  expires_at: instantSchema,
});
/** A file of its uploader, or of a delegation. */
export type StoredFile = z.infer<typeof fileSchema>;

export const uploadSchema = z.object({
  /** Identifies the upload. */
  id: uploadIdSchema,
  /** How many bytes have arrived: the next ones begin here. */
  offset: z.int().min(0),
  /** How many bytes there will be; null while that is not known. */
  length: z.int().min(0).nullable(),
  /** Until when it may be continued. Each request moves it. */
  expires_at: instantSchema,
  /** The file, once all bytes have arrived. */
  file: fileSchema.nullable(),
});
/** A file that arrives in pieces. */
export type Upload = z.infer<typeof uploadSchema>;

export const filesPageSchema = z.object({
  /** Newest first. */
  files: z.array(fileSchema),
  /** For the next page; null: this is the last one. */
  next_cursor: z.string().nullable(),
  /** The bytes of all files and uploads of the principal. */
  bytes: z.int().min(0),
  /** How many bytes they may have together. */
  max_bytes: z.int().min(0),
});
/** The files that a principal has uploaded. */
export type FilesPage = z.infer<typeof filesPageSchema>;
