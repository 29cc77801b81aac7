/** `npm run pictures`: runs the suites that take pictures, and copies those that the docs show to `docs/pictures/`. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { shownFiles, TAKEN } from './pictures.ts'

const root = join(import.meta.dirname, '../../..')
const kept = join(root, 'docs/pictures')
const suites = ['page.test.ts', 'traffic.test.ts'].map((file) => join(import.meta.dirname, file))

rmSync(TAKEN, { recursive: true, force: true })
execFileSync(process.execPath, [join(root, 'build/page.js')], { stdio: 'inherit' })
execFileSync(process.execPath, ['--test', ...suites], { stdio: 'inherit', cwd: root })
rmSync(kept, { recursive: true, force: true })
mkdirSync(kept, { recursive: true })
for (const file of shownFiles()) copyFileSync(join(TAKEN, file), join(kept, file))
