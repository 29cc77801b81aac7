/** When to stop, where the first signal asks for it and the second insists, and when to read settings again. */

/**
 * Under a launcher one signal can arrive twice: a terminal or systemd tells every process of the group, and the
 * launcher passes its own on. Within this time, in milliseconds, two are one.
 */
const ECHO_MS = 500

export interface SignalSource {
  on(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP', heard: () => void): unknown
}

export interface StopOptions {
  readonly source: SignalSource
  /** Whether a signal may be heard twice. */
  readonly echoes: boolean
  readonly now?: () => number
  /** Called on the second signal. */
  readonly insist: () => void
}

/** Resolves on the first SIGTERM or SIGINT. */
export function stopSignal({ source, echoes, now = () => performance.now(), insist }: StopOptions): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let first: number | undefined
  const heard = () => {
    if (first === undefined) {
      first = now()
      resolve()
    } else if (!echoes || now() - first > ECHO_MS) insist()
  }
  source.on('SIGTERM', heard)
  source.on('SIGINT', heard)
  return promise
}

/** Hears SIGHUP from now on, so that it does not end the process; those that came before `each` count as one. */
export function hangups(source: SignalSource): { each(run: () => void): void } {
  let heard = false
  let run = (): void => {
    heard = true
  }
  source.on('SIGHUP', () => run())
  return {
    each(given) {
      run = given
      if (heard) given()
    },
  }
}
