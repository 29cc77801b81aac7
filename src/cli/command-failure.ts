/** A command that did not do its job: what to tell the user, and the exit code. */

/** 1: the command failed. 2: the command was called wrongly. */
type ExitCode = 1 | 2

export class Failure extends Error {
  readonly exitCode: ExitCode

  constructor(message: string, { exitCode = 1, cause }: { exitCode?: ExitCode; cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'Failure'
    this.exitCode = exitCode
  }
}

/** The command line itself is wrong. */
export function misuse(message: string): Failure {
  return new Failure(message, { exitCode: 2 })
}
