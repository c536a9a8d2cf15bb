/**
 * Variables that Kubernetes and Docker set for a Service or a linked container. If its name begins with `errand`, they
 * look like settings, and no setting removes them: https://kubernetes.io/docs/concepts/services-networking/service/
 */

/** Names that only a service link has. */
const NAMES = [
  /_SERVICE_HOST$/,
  /_SERVICE_PORT(?:_|$)/,
  /_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR|START|END))?$/,
  // `docker run --link` also passes on the variables of the linked container.
  /_ENV_/,
];
/** Names that a setting may have, too. */
const VALUES = [
  { name: /_PORT(?:_START|_END)?$/, value: /^(?:tcp|udp|sctp):\/\//i },
  { name: /_NAME$/, value: /^\/[^/]+\/[^/]+$/ },
];

export function isServiceLink(name: string, value: string): boolean {
  return (
    NAMES.some((one) => one.test(name)) || VALUES.some((one) => one.name.test(name) && one.value.test(value))
  );
}
