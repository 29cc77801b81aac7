/** The entry of a thread for heavy work; `documents.ts` starts it. */
import { serveOffLoop } from '../lib/threads/serve-off-loop.ts'
import { doHeavyWork, type HeavyWork } from './heavy-work.ts'

// Only `documents.ts` sends work, and of this form.
serveOffLoop((work) => doHeavyWork(work as HeavyWork))
