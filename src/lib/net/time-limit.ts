/** Limits the time that the other end may take to send something; the result cancels the limit. */
export function limitTime(ms: number, expired: () => void): () => void {
  let turn: NodeJS.Immediate | undefined
  const timer = setTimeout(() => {
    // After the sockets were read: if the process was blocked for long, the other end was not slow.
    turn = setImmediate(expired)
  }, ms)
  return () => {
    clearTimeout(timer)
    clearImmediate(turn)
  }
}
