/** A log line for people: time, level, event, then its fields as `name=value`. */
import { styleText } from 'node:util'
import { printable } from '../text/printable.ts'

const colors = { fatal: 'red', error: 'red', warn: 'yellow', info: 'green', debug: 'blue', trace: 'gray' } as const

/** Turns a JSON line of the log into a readable one; a line that is not JSON is returned unchanged. */
export function prettyLine(line: string, { color }: { color: boolean }): string {
  const event = parse(line)
  if (!event) return line
  const { time, level, msg, err, ...fields } = event
  const paint = (style: Parameters<typeof styleText>[0], text: string) =>
    color ? styleText(style, text, { validateStream: false }) : text
  const name = String(level)
  const words = [
    paint('dim', String(time).slice(11, 23)),
    paint(isLevel(name) ? colors[name] : 'gray', name.toUpperCase().padEnd(5)),
    printable(textOf(msg)),
    ...Object.entries(fields).map(([key, value]) => `${paint('dim', `${printable(key)}=`)}${showValue(value)}`),
  ]
  return `${words.join(' ')}${trace(err)}\n`
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}

function isLevel(name: string): name is keyof typeof colors {
  return Object.hasOwn(colors, name)
}

function showValue(value: unknown): string {
  if (typeof value === 'string' && /^[^\s"=]+$/.test(value)) return printable(value)
  return printable(JSON.stringify(value))
}

/** The stack of an error, on separate lines. */
function trace(err: unknown): string {
  if (typeof err !== 'object' || err === null) return err === undefined ? '' : ` err=${showValue(err)}`
  const { stack, message } = err as { stack?: unknown; message?: unknown }
  const lines = textOf(stack ?? message ?? err).split('\n')
  return lines.map((each) => `\n    ${printable(each)}`).join('')
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined ? '' : JSON.stringify(value)
}
