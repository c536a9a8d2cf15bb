/** The tests of files, once more with a bucket instead of a folder. */
import { afterAll, beforeAll } from "vitest";

beforeAll(() => {
  process.env.ERRAND_TEST_FILES = "s3";
});
afterAll(() => {
  delete process.env.ERRAND_TEST_FILES;
});

// Another module than that of the quick tests, which this process may have run already.
for (const file of ["./upload.test.ts?bucket", "./named.test.ts?bucket"]) await import(file);
