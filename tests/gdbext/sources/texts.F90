! texts.F90: a Fortran string passed down two calls; -DALONE: without MPI.
subroutine count_signs(text, signs)
  implicit none
  character(len=*), intent(in) :: text
  integer, intent(out) :: signs
  signs = len_trim(text)
end subroutine count_signs

subroutine measure(text, other, signs)
  implicit none
  character(len=*), intent(in) :: text, other
  integer, intent(out) :: signs
  call count_signs(other, signs)
  if (text == other) signs = 0
end subroutine measure

program texts
#ifndef ALONE
  use mpi
#endif
  implicit none
  integer :: ierror, signs
  ierror = 0
  signs = 0
#ifndef ALONE
  call MPI_Init(ierror)
#endif
  call measure('short', 'rather longer', signs)
  if (signs /= 13) stop 1
#ifndef ALONE
  call MPI_Finalize(ierror)
#endif
end program texts
