/** Runs code whose errors have no stack. Visitors can cause thousands of them, and the stack is most of an error's cost. */
export function withoutStacks<T>(run: () => T): T {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return run()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}
