/** Signals: the first one to stop is a request, the second is final, SIGHUP reloads, and SIGUSR2 upgrades. */

/**
 * Under a launcher one signal can arrive twice: a terminal or systemd sends it to every process of the group, and the
 * launcher forwards its own. Two signals within this time count as one, in milliseconds.
 */
const ECHO_MS = 500

export interface SignalSource {
  on(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'SIGUSR2', heard: () => void): unknown
}

interface StopOptions {
  readonly source: SignalSource
  /** Whether one signal may arrive twice. */
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

/** Handles a signal from now on, so that it does not end the process. Those that arrive before `each` is called count as one. */
export function eachSignal(source: SignalSource, signal: 'SIGHUP' | 'SIGUSR2'): { each(run: () => void): void } {
  let heard = false
  let run = (): void => {
    heard = true
  }
  source.on(signal, () => run())
  return {
    each(given) {
      run = given
      if (heard) given()
    },
  }
}
