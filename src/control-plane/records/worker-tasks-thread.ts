/** The entry of a thread for heavy work; `check-documents.ts` starts it. */
import { serveOffLoop } from '../../lib/threads/serve-off-loop.ts'
import { doHeavyWork, type HeavyWork } from './worker-tasks.ts'

// Only `check-documents.ts` sends work, and of this form.
serveOffLoop((work) => doHeavyWork(work as HeavyWork))
