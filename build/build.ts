/** Builds the package: `dist/` from `src/`, JavaScript with source maps and the types of the library, and both pages. */
import { execFileSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'

const PROJECTS = ['tsconfig.build.json', 'tsconfig.types.json']

/** Throws when the sources have faults. */
export function build(): void {
  rmSync('built', { recursive: true, force: true })
  execFileSync(process.execPath, ['build/page.js'], { stdio: ['ignore', 2, 2] })
  // A clone can do without it, a package cannot.
  for (const page of ['built/page', 'built/agent-page'])
    if (!existsSync(`${page}/index.html`)) throw new Error(`${page} was not built`)
  for (const project of PROJECTS)
    execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '--project', project], {
      stdio: ['ignore', 2, 2],
    })
}
