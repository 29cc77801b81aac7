/** The log: events with fields as JSON lines, or as readable lines on a terminal; what is secret by name is masked. */
import { type Logger, pino, stdSerializers, stdTimeFunctions } from 'pino'
import { isSecretName, masked } from './log-mask.ts'
import { prettyLine } from './log-pretty.ts'

export type { Logger } from 'pino'

export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
export const logFormats = ['auto', 'json', 'pretty'] as const
export type LogLevel = (typeof logLevels)[number]
export type LogFormat = (typeof logFormats)[number]

/** Where lines go; `process.stderr` is one. */
export interface LogDestination {
  readonly isTTY?: boolean
  write(line: string): unknown
}

export interface LogOptions {
  readonly level?: LogLevel
  /** `auto` is `pretty` on a terminal and `json` elsewhere. */
  readonly format?: LogFormat
  readonly destination?: LogDestination
}

/** Opens a log; by default it writes to stderr, which leaves stdout to what a command prints. */
export function createLog({ level = 'info', format = 'auto', destination = process.stderr }: LogOptions = {}): Logger {
  const onTerminal = destination.isTTY === true
  const pretty = format === 'pretty' || (format === 'auto' && onTerminal)
  const color = onTerminal && !process.env.NO_COLOR
  const write = (line: string): unknown => destination.write(pretty ? prettyLine(line, { color }) : line)
  const log = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: masked },
      serializers: { err: shownError, error: shownError },
    },
    { write },
  )
  maskBindings(log)
  const whole = (lines: string): void =>
    void (pretty ? lines.split(/(?<=\n)/).forEach(write) : destination.write(lines))
  lineWriters.set(log, whole)
  return log
}

const lineWriters = new WeakMap<object, (lines: string) => void>()

/**
 * Where a log writes, for lines that are made elsewhere: whole lines of JSON as the log itself writes them, of which
 * nothing is masked. A log of requests cannot afford to look at every field of every line.
 */
export function lineWriter(log: Logger): (lines: string) => void {
  return lineWriters.get(log) ?? (() => {})
}

/** pino gives the fields of a child logger to no formatter, so they are masked on the way in. */
function maskBindings(log: Logger): void {
  // Children have their parent as prototype, so this one change holds for all of them; the proxy passes `this` on.
  // oxlint-disable-next-line typescript/unbound-method
  log.child = new Proxy(log.child, {
    apply: (child, parent, [bindings, ...rest]: [Record<string, unknown>, ...unknown[]]) =>
      Reflect.apply(child, parent, [masked(bindings), ...rest]),
  })
}

function shownError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { raw: _raw, ...plain } = stdSerializers.err(error)
  const shown: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(plain)) shown[name] = isSecretName(name) ? '[secret]' : value
  return masked(shown)
}
