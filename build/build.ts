/** Builds `dist/` from `src/`: JavaScript with source maps, and the types of the library. */
import { execFileSync } from 'node:child_process'

const PROJECTS = ['tsconfig.build.json', 'tsconfig.types.json']

/** Throws when the sources have faults. */
export function build(): void {
  for (const project of PROJECTS)
    execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '--project', project], {
      stdio: ['ignore', 2, 2],
    })
}
