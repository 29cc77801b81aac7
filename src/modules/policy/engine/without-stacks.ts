/** Runs code whose errors have no stack. */
export function withoutStacks<T>(run: () => T): T {
  // Visitors can cause thousands of errors, and the stack is most of an error's cost.
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return run()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}
