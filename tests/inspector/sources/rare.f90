! Reals of ten and sixteen bytes, and complex numbers of both.
module rare
  integer, parameter :: extended = selected_real_kind(18), quad = selected_real_kind(33)
  real(quad) :: tenth = -0.1_quad, several(3) = [1.0_quad, 2.5_quad, 1.0e-4000_quad], none
  real(extended) :: other = 0.1_extended
  complex(quad) :: pair = (1.5_quad, -2.5_quad)
  complex(extended) :: small = (0.5_extended, 3.0_extended)
  real(quad), allocatable :: grown(:)
end module
program main
  use rare
  use, intrinsic :: iso_fortran_env
  allocate (grown(2))
  grown = 7.125_quad
  none = 0
  print '(a)', 'ready'
  flush (output_unit)
  call execute_command_line('sleep 300')
end program
