/** Everything that is wrong with an agent's configuration, one line each. */
import { printable } from '../../lib/text/printable.ts'
import type { Problem } from '../../link/options/option-reader.ts'

export class ConfigError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** `where` gives the place of a path in the file, such as `postern-agent.yml line 7`. */
export function describeProblem(
  { path, fault }: Problem,
  where: (path: readonly string[]) => string = () => '',
): string {
  const position = where(path)
  return printable(`\`${path.join('.')}\`${position && ` (${position})`} ${fault}`)
}
