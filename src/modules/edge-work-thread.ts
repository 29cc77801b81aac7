/** The thread that compiles for edges; `edge-work.ts` starts it. */
import { compileProgram, programBuffers } from '../lib/patterns/pattern-program.ts'
import { serveOffLoop } from '../lib/threads/serve-off-loop.ts'
import { preparedBuffers, prepareExpression } from '../policy/parsed.ts'
import type { EdgeTask } from './edge-work.ts'

serveOffLoop((work) => {
  const task = work as EdgeTask // only `edge-work.ts` sends work, and of this form
  if (task.kind === 'patterns') {
    const program = compileProgram(task.patterns)
    return { result: program, moved: programBuffers(program) }
  }
  const prepared = task.texts.map(prepareExpression)
  return { result: prepared, moved: prepared.flatMap(preparedBuffers) }
})
