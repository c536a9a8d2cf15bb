import { expect, test } from "vitest";
import { sentinelOf } from "../../src/redis/sentinel.ts";
import { clusterOf, placeOf, problemOf, serverTargets } from "../../src/redis/target.ts";

const GOOD = {
  "redis://:p%2Cw@one:7000,two,[::1]:7002": {
    nodes: [
      { host: "one", port: 7000 },
      { host: "two", port: 6379 },
      { host: "::1", port: 7002 },
    ],
    tls: false,
    password: "p,w",
  },
  "rediss://ann:pw@one:7000, rediss://ann:pw@two:7001": {
    nodes: [
      { host: "one", port: 7000 },
      { host: "two", port: 7001 },
    ],
    tls: true,
    username: "ann",
    password: "pw",
  },
};

test.each(Object.entries(GOOD))("%s is a Cluster", (url, expected) => {
  expect(problemOf(url)).toBeNull();
  expect(clusterOf({ url })).toEqual(expected);
  const servers = serverTargets({ url });
  expect(servers.map((one) => clusterOf(one))).toEqual(servers.map(() => null));
  expect(servers.map(placeOf).join(", ")).toBe(placeOf({ url }).replace("::1", "[::1]"));
  // Messages show no password.
  expect(placeOf({ url })).not.toMatch(/p,w|p%2Cw|pw/);
});

test.each([
  ["redis://one", null],
  ["unix:/run/redis.sock", null],
  ["one:6379", "must begin with"],
  ["redis://one:70000", "not a valid URL"],
  ["one:7000,two:7001", "must begin with redis:// or rediss://"],
  ["unix:/run/a.sock,unix:/run/b.sock", "must begin with redis:// or rediss://"],
  ["redis://one:7000,", "invalid address of a Cluster node"],
  ["redis://one:7000,two:70000", "invalid address of a Cluster node"],
  ["redis://one:7000,rediss://two:7001", "mixes redis:// and rediss://"],
  ["redis://:a@one:7000,redis://:b@two:7001", "different users or passwords"],
  ["redis://one:7000,two:7001/3", "names a database"],
])("%s: %s", (url, problem) => {
  if (problem === null) expect(problemOf(url)).toBeNull();
  else expect(problemOf(url)).toContain(problem);
  // Never a password.
  expect(problemOf(url) ?? "").not.toContain(":a@");
});

test("the name of a server has its database, unless that is the default", () => {
  expect(placeOf({ url: "redis://ann:pw@one/2" })).toBe("one:6379/2");
  expect(placeOf({ url: "redis://one:7000?db=1" })).toBe("one:7000/1");
  for (const url of ["redis://one", "redis://one/", "redis://one/0"])
    expect(placeOf({ url })).toBe("one:6379");
});

test("one node of a Cluster, once it is recognized, is a Cluster of one known node", () => {
  expect(clusterOf({ url: "redis://one:7000" })).toBeNull();
  expect(clusterOf({ url: "redis://one:7000", isClusterNode: true })).toEqual({
    nodes: [{ host: "one", port: 7000 }],
    tls: false,
  });
});

test("Sentinels name the master of a group", () => {
  const url = "rediss+sentinel://ann:p%2Cw@one,two:26380,[::1]:26381/group%201/3?sentinel_password=s%26t+";
  expect(problemOf(url)).toBeNull();
  expect(clusterOf({ url })).toBeNull();
  expect(sentinelOf(url)).toEqual({
    sentinels: [
      { host: "one", port: 26_379 },
      { host: "two", port: 26_380 },
      { host: "::1", port: 26_381 },
    ],
    name: "group 1",
    db: 3,
    tls: true,
    username: "ann",
    password: "p,w",
    sentinelPassword: "s&t+",
  });
  expect(placeOf({ url })).toBe("group 1/3 at one:26379, two:26380, ::1:26381");
});

test.each([
  ["redis+sentinel://one/main", null],
  ["redis+sentinel://one:26379", "does not name the master's group"],
  ["redis+sentinel://one,/main", "invalid address of a Sentinel"],
  ["redis+sentinel://:50%off@one/main", "write it as %25"],
  ["redis+sentinel://one/main/x", "more than a database number"],
  ["redis+sentinel://one/main?", null],
  ["redis+sentinel://one/main?sentinel_password=a", null],
  ["redis+sentinel://one/main?sentinel_pasword=a", 'unknown parameter "sentinel_pasword"; the only one is'],
  ["redis+sentinel://one/main?sentinel_password=a&tls=1", 'unknown parameter "tls"'],
  ["redis+sentinel://one/main?sentinel_password=a&sentinel_password=b", "sentinel_password more than once"],
  ["redis+sentinel://one,:b@two/main", "a user or password at a Sentinel other than the first"],
  ["redis+sentinel://:a@one,:b@two/main", "a user or password at a Sentinel other than the first"],
  ["redis+sentinel://ann:a@one,ann:a@two/main", null],
])("%s: %s", (url, problem) => {
  if (problem === null) expect(problemOf(url)).toBeNull();
  else expect(problemOf(url)).toContain(problem);
  // Never a password.
  expect(problemOf(url) ?? "").not.toMatch(/:[ab]@|=[ab]/);
});
