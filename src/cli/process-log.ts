/** Logs what Node would print on stderr: warnings, and the error that ends the process. */
import { flushLog, type Logger } from '../lib/log/create-log.ts'

/** How long writing the log line of a crash may take, in milliseconds. */
const LAST_LINE_MS = 1000

export function logProcess(log: Logger): void {
  // Node's own listener writes to stderr, which may block.
  process.removeAllListeners('warning')
  process.on('warning', (warning) => log.warn({ err: warning }, 'warning from Node'))
  // Unhandled rejections end here too.
  process.on('uncaughtException', (err) => {
    log.fatal({ err }, 'server crashed')
    void flushLog(log, LAST_LINE_MS).then(() => process.exit(1))
  })
}
