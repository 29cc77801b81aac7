/** The log: events with fields, as JSON or as readable lines on a terminal. */
import { type Logger, pino, stdSerializers, stdTimeFunctions } from 'pino'
import { cutText } from '../text/cut-text.ts'
import { LineSink } from './line-sink.ts'
import { isSecretName, maskSecrets } from './log-mask.ts'
import { prettyLine } from './log-pretty.ts'
import { standardPort } from './standard-output.ts'

export type { Logger } from 'pino'

export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
export const logFormats = ['auto', 'json', 'pretty'] as const
type LogLevel = (typeof logLevels)[number]
type LogFormat = (typeof logFormats)[number]

/** Where lines go. */
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

/** Longer log lines are shortened, in characters: many fields may come from outside at once. */
const MAX_LINE_CHARACTERS = 32 * 1024

/** How much of a stack is logged, in bytes. */
const MAX_STACK_BYTES = 8 * 1024

/**
 * Opens a log; by default it writes to stderr, which leaves stdout to the output of commands. Fields with secret names are
 * masked.
 */
export function createLog({ level = 'info', format = 'auto', destination }: LogOptions = {}): Logger {
  const target = destination ?? openStderr((line) => formatted(line))
  const onTerminal = target.isTTY === true
  const pretty = format === 'pretty' || (format === 'auto' && onTerminal)
  const color = onTerminal && !process.env.NO_COLOR
  const formatted = (line: string): string => (pretty ? prettyLine(line, { color }) : line)
  const write = (line: string): unknown =>
    target.write(formatted(line.length > MAX_LINE_CHARACTERS ? shortenLine(line) : line))
  const log = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: maskSecrets },
      serializers: { err: shownError, error: shownError },
    },
    { write },
  )
  maskBindings(log)
  const lines = (text: string): void => void (pretty ? text.split(/(?<=\n)/).forEach(write) : target.write(text))
  targets.set(log, { lines, ...(target instanceof LineSink && { sink: target }) })
  return log
}

interface Target {
  readonly lines: (text: string) => void
  readonly sink?: LineSink
}

const targets = new WeakMap<object, Target>()

function openStderr(shown: (line: string) => string): LineSink {
  const notice = (lost: number): string => shown(lossLine(lost))
  const sink = new LineSink({ port: standardPort(process.stderr), notice })
  process.on('exit', () => sink.finish())
  return sink
}

/**
 * Writes ready-made lines to where `log` writes: whole JSON lines in the form of the log, which are not masked. For the
 * request log, which cannot afford to examine every field of every line.
 */
export function lineWriter(log: Logger): (lines: string) => void {
  return targets.get(log)?.lines ?? (() => {})
}

/** How many lines were dropped since the start because they could not be written. */
export function lostLines(log: Logger): number {
  return targets.get(log)?.sink?.lost ?? 0
}

/** Resolves when every line is written, or after `limitMs`. */
export async function flushLog(log: Logger, limitMs: number): Promise<void> {
  await targets.get(log)?.sink?.flush(limitMs)
}

/** The JSON line that reports `lost` dropped ones. */
export function lossLine(lost: number): string {
  return `${JSON.stringify({ level: 'warn', time: new Date().toISOString(), lines: lost, msg: 'log lines were lost' })}\n`
}

/** The event with its fields as one text, cut; for a line that is not an event, its beginning. */
function shortenLine(line: string): string {
  let event: Record<string, unknown>
  try {
    event = JSON.parse(line) as Record<string, unknown>
  } catch {
    return `${cutText(line)}\n`
  }
  const { level, time, msg, ...fields } = event
  const text = typeof msg === 'string' ? cutText(msg) : msg
  return `${JSON.stringify({ level, time, fields: cutText(JSON.stringify(fields)), msg: text })}\n`
}

/** pino's formatters never see the fields of a child logger, so they are masked when the child is made. */
function maskBindings(log: Logger): void {
  // Children have their parent as prototype, so this one change applies to all of them; the proxy passes `this` on.
  // oxlint-disable-next-line typescript/unbound-method
  log.child = new Proxy(log.child, {
    apply: (child, parent, [bindings, ...rest]: [Record<string, unknown>, ...unknown[]]) =>
      Reflect.apply(child, parent, [maskSecrets(bindings), ...rest]),
  })
}

function shownError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { raw: _raw, ...plain } = stdSerializers.err(error)
  const shown: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(plain)) shown[name] = isSecretName(name) ? '[secret]' : value
  return { ...maskSecrets(shown), stack: shownStack(plain.stack, plain.message) }
}

/** Cuts the message inside a stack as well: the frames are ours, but the message may hold text from outside. */
function shownStack(stack: string | undefined, message: string): string | undefined {
  return (
    stack &&
    cutText(
      stack.replace(message, () => cutText(message)),
      MAX_STACK_BYTES,
    )
  )
}
