/** The thread that compiles for edges; `edge-worker-tasks.ts` starts it. */
import { compileProgram, programBuffers } from '../lib/patterns/pattern-program.ts'
import { serveOffLoop } from '../lib/threads/serve-off-loop.ts'
import type { EdgeTask } from './edge-worker-tasks.ts'
import { preparedBuffers, prepareExpression } from './policy/engine/parsed.ts'

serveOffLoop((work) => {
  const task = work as EdgeTask // only `edge-worker-tasks.ts` sends work, and of this form
  if (task.kind === 'patterns') {
    const program = compileProgram(task.patterns)
    return { result: program, moved: programBuffers(program) }
  }
  const prepared = task.texts.map(prepareExpression)
  return { result: prepared, moved: prepared.flatMap(preparedBuffers) }
})
