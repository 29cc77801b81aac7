/**
 * A limit for the time that the other end may take to send something. What has arrived by then is read first: when the process
 * stood still for long, it was not the other end that was slow. Gives how to call it off.
 */
export function limitTime(ms: number, expired: () => void): () => void {
  let turn: NodeJS.Immediate | undefined
  const timer = setTimeout(() => {
    // After the sockets had their turn.
    turn = setImmediate(expired)
  }, ms)
  return () => {
    clearTimeout(timer)
    clearImmediate(turn)
  }
}
