/** Runs what may throw thousands of times, for all that a visitor sends: most of what an error costs is its stack. */
export function withoutStacks<T>(run: () => T): T {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return run()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}
