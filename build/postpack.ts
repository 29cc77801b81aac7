/** npm runs this after packing: it restores the repository. */
import { rmSync } from 'node:fs'
import { bringBack } from './set-aside.ts'

bringBack()
// A clone runs its sources; a `dist/` beside them would only go stale.
rmSync('dist', { recursive: true, force: true })
