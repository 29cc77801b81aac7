/** Prints rows: aligned with headings for people, separated by tabs without headings for programs. */
import { printable } from '../lib/text/printable.ts'
import type { Terminal } from './terminal.ts'

/** Widest cell on a terminal, in characters; programs get the whole value. */
const MAX_CELL = 48

type Row = Readonly<Record<string, unknown>>

/** Prints one line per row, with these columns. */
export function printTable(terminal: Terminal, columns: readonly string[], rows: readonly Row[]): void {
  const lines = rows.map((row) => columns.map((column) => cell(row[column])))
  const heading = columns.map((column) => column.toUpperCase())
  if (!terminal.isTTY) printTabbed(terminal, lines)
  else if (rows.length === 0) terminal.out('none\n')
  else printAligned(terminal, [heading, ...lines.map((line) => line.map(cut))])
}

/** Prints one line per field of one item. */
export function printFields(terminal: Terminal, fields: Row): void {
  const lines = Object.entries(fields).map(([name, value]) => [name, cell(value)])
  if (terminal.isTTY) printAligned(terminal, lines)
  else printTabbed(terminal, lines)
}

export function printJson(terminal: Terminal, value: unknown): void {
  terminal.out(`${JSON.stringify(value, null, 2)}\n`)
}

function printTabbed(terminal: Terminal, lines: readonly (readonly string[])[]): void {
  for (const line of lines) terminal.out(`${line.join('\t')}\n`)
}

function printAligned(terminal: Terminal, lines: readonly (readonly string[])[]): void {
  const widths: number[] = []
  for (const line of lines) {
    for (const [i, text] of line.entries()) widths[i] = Math.max(widths[i] ?? 0, text.length)
  }
  for (const line of lines) {
    const padded = line.map((text, i) => text.padEnd(widths[i] ?? 0))
    terminal.out(`${padded.join('  ').trimEnd()}\n`)
  }
}

/** A value in one line, whatever it holds. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string') return printable(value)
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return printable(value.join(','))
  return printable(JSON.stringify(value))
}

function cut(text: string): string {
  return text.length > MAX_CELL ? `${text.slice(0, MAX_CELL - 1)}…` : text
}
