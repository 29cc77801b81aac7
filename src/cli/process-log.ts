/** Sends to the log what Node would print on stderr by itself: warnings, and the error that ends the process. */
import { flushLog, type Logger } from '../lib/log/log.ts'

/** How long the line about a crash may take to be written, in milliseconds. */
const LAST_LINE_MS = 1000

export function logProcess(log: Logger): void {
  // Node's own listener writes to stderr, and blocks where that blocks.
  process.removeAllListeners('warning')
  process.on('warning', (warning) => log.warn({ err: warning }, 'warning from Node'))
  // A promise that nobody caught ends here too.
  process.on('uncaughtException', (err) => {
    log.fatal({ err }, 'server crashed')
    void flushLog(log, LAST_LINE_MS).then(() => process.exit(1))
  })
}
