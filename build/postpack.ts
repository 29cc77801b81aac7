/** npm runs this after it packed: the repository is as it was. */
import { rmSync } from 'node:fs'
import { bringBack } from './set-aside.ts'

bringBack()
// A clone runs its sources; what lies beside them could only be old.
rmSync('dist', { recursive: true, force: true })
