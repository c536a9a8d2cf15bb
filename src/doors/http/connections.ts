/**
 * All connections of a gateway. A connection on which no valid token was shown yet is unknown: only unknown ones are
 * closed for a new one, so that nobody without a token locks out those who have one. A trusted proxy's connection counts
 * for the client of the request on it, and for nobody while it is idle. Limit: behind a proxy that is not trusted, all its
 * clients share its address.
 */
import type { Socket } from "node:net";
import { LIMITS } from "../../schema/limits.ts";
import { networkOf } from "./address-list.ts";
import { Connection } from "./connection.ts";
import { OwnedBytes } from "./owned-bytes.ts";
import { type ForwardedHeaders, TrustedProxies } from "./trusted-proxies.ts";

/**
 * An unknown connection of this many checks is closed when its address has too many. Counts checks, not time: after a
 * stall of this process, requests that have arrived are read first.
 */
const OLD_CHECKS = 2;

export interface ConnectionsOptions {
  /** The most connections in all. */
  readonly most?: number;
  /** The most unknown connections of one address that stay open. */
  readonly mostUnknown?: number;
  /** Their connections are those of many. */
  readonly proxies?: TrustedProxies;
}

interface Unknown {
  readonly socket: Socket;
  readonly address: string;
  readonly since: number;
}

export class Connections {
  readonly #most: number;
  readonly #mostUnknown: number;
  readonly #proxies: TrustedProxies;
  readonly #headers = new OwnedBytes();
  readonly #all = new Map<Socket, Connection>();
  /** Each oldest first: of all, and by address. */
  readonly #unknown = new Map<Connection, Unknown>();
  readonly #byAddress = new Map<string, Set<Connection>>();
  #checks = 0;
  readonly #known = (connection: Connection) => this.#forget(connection);

  constructor({
    most = LIMITS.connections.value,
    mostUnknown = LIMITS.unknown_connections.value,
    proxies = new TrustedProxies(),
  }: ConnectionsOptions = {}) {
    this.#most = most;
    this.#mostUnknown = mostUnknown;
    this.#proxies = proxies;
  }

  /** The bytes of headers in memory: of one principal or address, or of all. */
  headerBytes(owner?: string): number {
    return this.#headers.of(owner);
  }

  get(socket: Socket): Connection | undefined {
    return this.#all.get(socket);
  }

  entries(): IterableIterator<[Socket, Connection]> {
    return this.#all.entries();
  }

  /** Closes the oldest unknown connection if there is no room, or the new one if all are known. */
  add(socket: Socket): boolean {
    if (this.#all.size >= this.#most && !this.#closeOldest()) {
      socket.destroy();
      return false;
    }
    const connection = new Connection(socket, this.#headers, this.#known);
    this.#all.set(socket, connection);
    this.#distrust(connection, socket, socket.remoteAddress ?? "");
    return true;
  }

  /** A request begins on the connection: from a trusted proxy, it may be another client's than the last one. */
  begin(connection: Connection, socket: Socket, headers: ForwardedHeaders): void {
    const peer = socket.remoteAddress ?? "";
    if (!this.#proxies.has(peer)) return;
    const client = this.#proxies.clientOf(peer, headers);
    connection.restart(client);
    this.#forget(connection);
    this.#distrust(connection, socket, client);
  }

  /** The response is complete: an idle connection of a proxy is nobody's, and closing it could lose the next request. */
  end(socket: Socket): void {
    const connection = this.#all.get(socket);
    connection?.end();
    if (connection && !connection.isBusy && this.#proxies.has(socket.remoteAddress ?? ""))
      this.#forget(connection);
  }

  #distrust(connection: Connection, socket: Socket, client: string): void {
    const address = networkOf(client);
    this.#unknown.set(connection, { socket, address, since: this.#checks });
    if (this.#proxies.has(client)) return;
    const same = this.#byAddress.get(address);
    if (same) same.add(connection);
    else this.#byAddress.set(address, new Set([connection]));
  }

  delete(socket: Socket): void {
    const connection = this.#all.get(socket);
    if (!connection) return;
    this.#all.delete(socket);
    this.#forget(connection);
    connection.release();
  }

  /**
   * Closes the oldest unknown connections of each address that has too many, and those with an answered request for whose
   * headers there is no room. Called at equal intervals.
   */
  check(): void {
    this.#checks += 1;
    for (const [connection, { socket }] of this.#unknown)
      if (!connection.hasRoomAfterAnswer(socket)) this.#close(socket);
    for (const connections of this.#byAddress.values()) {
      let excess = connections.size - this.#mostUnknown;
      if (excess <= 0) continue;
      for (const connection of connections) {
        const unknown = this.#unknown.get(connection);
        if (excess <= 0 || !unknown || this.#checks - unknown.since < OLD_CHECKS) break;
        excess -= 1;
        this.#close(unknown.socket);
      }
    }
  }

  #closeOldest(): boolean {
    for (const { socket } of this.#unknown.values()) {
      this.#close(socket);
      return true;
    }
    return false;
  }

  #close(socket: Socket): void {
    this.delete(socket);
    socket.destroy();
  }

  #forget(connection: Connection): void {
    const unknown = this.#unknown.get(connection);
    if (!unknown) return;
    this.#unknown.delete(connection);
    const same = this.#byAddress.get(unknown.address);
    same?.delete(connection);
    if (same?.size === 0) this.#byAddress.delete(unknown.address);
  }
}
