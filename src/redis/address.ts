/** The address of a Redis server, or of a Sentinel. */
export interface Address {
  readonly host: string;
  readonly port: number;
}
