/** What a thread for explanations runs; `explainer.ts` starts it. */
import { BadValue } from '../../lib/shape/check.ts'
import { serveOffLoop } from '../../lib/threads/serve-off-loop.ts'
import type { ExplainWork } from '../../model/explanation.ts'
import { explain } from './explain.ts'
import type { ExplainResult } from './explainer.ts'

serveOffLoop(async (work) => {
  try {
    // Only `explainer.ts` sends work, and of this form.
    return { result: { explanation: await explain(work as ExplainWork) } satisfies ExplainResult }
  } catch (error) {
    if (!(error instanceof BadValue)) throw error
    const { field, kind, message } = error
    return { result: { badValue: { field, kind, message } } satisfies ExplainResult }
  }
})
