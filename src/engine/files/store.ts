/** Where the content of files is: a folder, or a bucket. A content is written once, from its begin to its end. */
import type { Readable } from "node:stream";

/** The first and the last byte, both included. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** What the store has of a content. */
export interface StoredContent {
  readonly name: string;
  readonly size: number;
  /** When bytes were last added, ms. */
  readonly changedAt: number;
}

export interface FileStore {
  /** For the log and for messages: a path, or the URL of a bucket, without secrets. */
  readonly place: string;
  /** Throws if the place cannot be used; {@link StoreSetupError} if its settings are wrong. */
  prepare(): Promise<void>;
  /** The bytes that may still be written; null if that is not known. */
  freeBytes(): Promise<number | null>;
  /** How many bytes of the content are stored; 0 if there are none. */
  size(name: string): Promise<number>;
  /**
   * Adds bytes at `offset`, which is the size so far, as they arrive. When it throws, what arrived before may be stored.
   * Throws {@link StoreFullError}.
   */
  append(name: string, offset: number, bytes: AsyncIterable<Uint8Array>): Promise<void>;
  /** Call it after the last byte: the content survives a crash from then on. */
  seal(name: string): Promise<void>;
  read(name: string, range?: ByteRange): Promise<Readable>;
  /** Removing what is not there succeeds. */
  remove(name: string): Promise<void>;
  /** Everything of a broker in the place, in no order. What is written meanwhile may be missing. */
  contents(): AsyncIterable<StoredContent>;
}

/** There is no space left. */
export class StoreFullError extends Error {
  override readonly name = "StoreFullError";
}

/** The settings of the store are wrong; the message says which, without secrets. */
export class StoreSetupError extends Error {
  override readonly name = "StoreSetupError";
}
