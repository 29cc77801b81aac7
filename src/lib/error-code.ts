/** The code of an error, such as `ENOENT` from the system; undefined for one without a code. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}
