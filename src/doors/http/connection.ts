/**
 * One connection: serves its requests one after the other, counts the headers that it keeps, and watches the progress of
 * its reader. Limit: a pipelined request waits for the previous response, so that no lease is granted that cannot be
 * delivered. (The socket is read on while it waits: otherwise the end of the connection would not be seen.)
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { LIMITS } from "../../schema/limits.ts";
import { networkOf } from "./address-list.ts";
import { addressOwner, type OwnedBytes } from "./owned-bytes.ts";

const STALLED_MS = LIMITS.stalled_seconds.value * 1000;
/** The slowest pace allowed: unread bytes get the time to be read at this pace, in addition to {@link STALLED_MS}. */
const BYTES_A_SECOND = 64 * 1024;

/** What V8 needs for each string, and Node for the objects of a request that waits. */
const BYTES_PER_STRING = 32;
const BYTES_PER_REQUEST = 2 * 1024;
/** The headers of a request that is served are not counted up to this size. */
const UNCOUNTED_HEADER_BYTES = 4 * 1024;

/** Estimates the memory of the headers of a request. */
export const headerBytes = (rawHeaders: readonly string[]): number =>
  rawHeaders.reduce((sum, text) => sum + text.length + BYTES_PER_STRING, 0);

/** RFC 9112, 3.2: of two Host headers, two programs on the way might each take another one. */
export function hasSeveralHosts({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === "host") hosts += 1;
  }
  return hosts > 1;
}

/** Whether a request has more headers than allowed. Node drops those beyond one more. */
export const hasTooManyHeaders = ({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">): boolean =>
  rawHeaders.length > 2 * LIMITS.headers.value;

/** The owner of what an address without a token holds. */
export const ownerOf = (client: string): string => addressOwner(networkOf(client));

const ofSockets = new WeakMap<Socket, Connection>();

interface Waiting {
  readonly serve: () => void;
  readonly bytes: number;
  readonly bearsToken: boolean;
}

export class Connection {
  /** Whether a response is incomplete. */
  isBusy = false;
  /** Whether a valid token was shown on it. */
  isKnown = false;
  /** The address of the client; behind a trusted proxy that of the request's. */
  client: string;
  readonly #headers: OwnedBytes;
  readonly #onKnown: (connection: Connection) => void;
  /** Whom its headers count for: the principal that it showed last, before that its address. */
  #owner: string;
  /** The headers of the request that is served, and of those that wait; each as counted. */
  #served = 0;
  #held = 0;
  #waiting: Waiting[] | undefined;
  /**
   * The request that is served bears a token which was not refused: what addresses hold in all must not cut it off before
   * its token is looked up.
   */
  #isTokenUnrefused = false;
  /** The bytes that the reader had read at the last check, and when that number last changed. */
  #bytesRead = -1;
  #readAt = 0;

  /** `headers` counts the bytes of all connections. */
  constructor(socket: Socket, headers: OwnedBytes, onKnown: (connection: Connection) => void = () => {}) {
    this.#headers = headers;
    this.#onKnown = onKnown;
    this.client = socket.remoteAddress ?? "";
    this.#owner = ownerOf(this.client);
    ofSockets.set(socket, this);
  }

  static of(socket: Socket): Connection | undefined {
    return ofSockets.get(socket);
  }

  /** The next request is another client's, who has shown no token yet. */
  restart(client: string): void {
    this.client = client;
    this.isKnown = false;
    this.#own(ownerOf(client));
  }

  /** A request on this connection has a valid token of this principal. */
  identify(principal: string): void {
    this.#own(principal);
    if (this.isKnown) return;
    this.isKnown = true;
    this.#onKnown(this);
  }

  #own(owner: string): void {
    if (owner === this.#owner) return;
    const held = this.#held;
    this.#count(-held);
    this.#owner = owner;
    this.#count(held);
  }

  /** The token of the request is not valid; false if there is no room for a request without one. */
  rejectToken(): boolean {
    this.#isTokenUnrefused = false;
    return this.#hasRoom();
  }

  /**
   * False if the request has an answer and there is no room for its headers without a token: some answers, as 404, need no
   * look at the token. True as long as no answer waits to be sent.
   */
  hasRoomAfterAnswer(socket: Socket): boolean {
    return !this.#isTokenUnrefused || socket.writableLength === 0 || this.rejectToken();
  }

  /**
   * Begins or queues the request; false if too much is queued on it, or by its principal. `bearsToken`: it has an
   * `Authorization`, valid or not.
   */
  begin(bytes: number, serve: () => void, bearsToken = false): boolean {
    if (!this.isBusy) {
      this.isBusy = true;
      this.#serve({ bytes, serve, bearsToken });
      return this.#hasRoom();
    }
    this.#waiting ??= [];
    this.#waiting.push({ serve, bytes, bearsToken });
    this.#count(bytes + BYTES_PER_REQUEST);
    return this.#waiting.length <= LIMITS.pipelined.value && this.#hasRoom();
  }

  /** The response is sent or has failed: begins the next request. */
  end(): void {
    this.#count(-this.#served);
    this.#served = 0;
    this.#isTokenUnrefused = false;
    const next = this.#waiting?.shift();
    if (!next) {
      this.isBusy = false;
      return;
    }
    this.#count(-next.bytes - BYTES_PER_REQUEST);
    this.#serve(next);
  }

  /** The connection is closed: nothing of it is held any longer. */
  release(): void {
    this.#waiting = undefined;
    this.#served = 0;
    this.#count(-this.#held);
  }

  #serve({ bytes, serve, bearsToken }: Waiting): void {
    this.#isTokenUnrefused = bearsToken;
    this.#served = bytes > UNCOUNTED_HEADER_BYTES ? bytes : 0;
    this.#count(this.#served);
    serve();
  }

  #count(bytes: number): void {
    if (bytes === 0) return;
    this.#held += bytes;
    this.#headers.add(this.#owner, bytes);
  }

  #hasRoom(): boolean {
    if (this.#held === 0) return true;
    const { ofAddresses } = this.#headers;
    const most = LIMITS.anonymous_header_bytes.value;
    // While their tokens are looked up, addresses may hold more than their share; that is not at principals' cost.
    const all = this.#headers.of() - (this.isKnown ? Math.max(0, ofAddresses - most) : 0);
    return (
      this.#headers.of(this.#owner) <= LIMITS.header_bytes.value &&
      all <= LIMITS.gateway_header_bytes.value &&
      (this.isKnown || this.#isTokenUnrefused || ofAddresses <= most)
    );
  }

  /** Whether there are unread bytes and the reader has read none for too long. */
  isStalled(socket: Socket, now: number): boolean {
    const unread = socket.writableLength;
    if (unread === 0) {
      this.#bytesRead = -1;
      return false;
    }
    const read = socket.bytesWritten - unread;
    if (read !== this.#bytesRead) {
      this.#bytesRead = read;
      this.#readAt = now;
    }
    return now - this.#readAt > STALLED_MS + (unread / BYTES_A_SECOND) * 1000;
  }
}
