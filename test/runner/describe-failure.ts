/** Tells what failed, where, and with which command it is repeated alone. */
import { WORKERS_VARIABLE } from '../support/test-workers.ts'
import type { Failure } from './report-tests.ts'

/** The file in which it failed, and how many workers its servers had if not the usual number. */
export interface FailedFile {
  readonly file: string
  readonly workers?: string | undefined
}

export function describeFailure({ names, ms, place, error, fullName }: Failure, failed: FailedFile): string {
  const title = `✖ ${[nameOf(failed), ...names].join(' > ')} (${ms.toFixed(0)} ms)`
  const lines = [`at ${place}`, ...error.split('\n'), `again: ${repeating(fullName, failed)}`]
  return `${title}\n${lines.map((line) => `  ${line}`).join('\n')}\n`
}

/** A file, and what is different for its servers. */
export function nameOf({ file, workers }: FailedFile): string {
  return workers === undefined ? file : `${file} with ${workers} workers`
}

/** The command for the shell that runs the test of this full name, or the whole file. */
export function repeating(fullName: string | null, { file, workers }: FailedFile): string {
  const variable = workers === undefined ? [] : [`${WORKERS_VARIABLE}=${workers}`]
  const pattern = fullName === null ? [] : [`--test-name-pattern=${quoted(`^${escaped(fullName)}$`)}`]
  return [...variable, 'node --test', ...pattern, file].join(' ')
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
