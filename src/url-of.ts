/** The URL by which a client on this machine reaches the gateway. */
export function urlOf(host: string, port: number): string {
  const name =
    host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host.includes(":") ? `[${host}]` : host;
  return `http://${name}:${port}`;
}
