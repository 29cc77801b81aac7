/** Says why a call was refused, to screen readers too; empty while there is no fault. */
import type { CallFault } from './api-caller.ts'
import { HelpText } from './help-text.tsx'

interface FaultNoticeProps {
  readonly fault: Pick<CallFault, 'text'> | undefined
  /** Shown behind the sentence. */
  readonly code?: string | undefined
}

export function FaultNotice({ fault, code }: FaultNoticeProps) {
  return (
    <div role="alert">
      {fault && (
        <p class="notice is-bad">
          <HelpText text={fault.text} />
          {code !== undefined && <span class="soft small"> {code}</span>}
        </p>
      )}
    </div>
  )
}
