import type { LaunchStep } from '../../helper/contract.ts';

/** What a space or home that isn't as it was made can fail with; anything else is want of resources. */
const signsOfBreakage: readonly string[] = ['ENOTDIR', 'EPERM', 'EACCES', 'ENOENT', 'ELOOP'];

/** Whether a launch failed since the user's space or home is not as this service made it. */
export const showsBrokenSpace = (step: LaunchStep, errno: string): boolean =>
  (step === 'space' || step === 'home') && signsOfBreakage.includes(errno);
