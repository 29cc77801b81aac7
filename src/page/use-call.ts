/** Makes the calls of a view, one at a time. */
import { useState } from 'preact/hooks'
import type { ApiCaller, CallFault, CallOutcome } from './api-caller.ts'
import { usePage } from './page-state.ts'

/** The function that calls, whether a call is under way, and why the last one failed. */
export function useCall() {
  const { api } = usePage()
  const [fault, setFault] = useState<CallFault>()
  const [isBusy, setBusy] = useState(false)
  const call = async <T>(...request: Parameters<ApiCaller['call']>): Promise<CallOutcome<T>> => {
    setBusy(true)
    const outcome = await api.call<T>(...request)
    setBusy(false)
    setFault(outcome.ok ? undefined : outcome.fault)
    return outcome
  }
  return { call, fault, isBusy }
}
